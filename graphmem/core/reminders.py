"""Which sentence of a user's message looks like a standing setting: who they are, how things are done from now on."""

import re
from collections.abc import Iterator

QUOTED_CHARACTERS = 200
_SHORTEST_SENTENCE = 3
_LONGEST_SENTENCE = 400  # longer ones are prose that was pasted
_FILLER = "\ufffc"

# ---- what are not the user's own words

_LINES = re.compile(
    r"""
      ```.*?(?:```|\Z)
    | ^[ \t]*+(?:
        (?:>|\$[ ]|@@|\+(?!\d)|\||[{<])                                      # quotes, prompts, diffs, tables
      | \[?(?:\d{4}[-/]\d\d?[-/]\d\d?|\d\d:\d\d:\d\d)                      # log lines
      | [^\w\n]{0,3}(?:trace|debug|info|notice|warn|warning|error|fatal|critical|panic|错误|警告|异常|报错|失败)
        [^\w\n]{0,2}[\]:：]
      | at[ ]\S+[ ]?\(|File[ ]"|Traceback|Caused[ ]by|\w*(?:Error|Exception)\b
      )[^\n]*
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_QUOTED = re.compile(
    r"""`[^`\n]*`|"[^"\n]*"|“[^“”\n]{0,300}”|‘[^‘’\n]{0,300}’(?!\w)|「[^「」\n]{0,300}」|『[^『』\n]{0,300}』|
    «[^«»\n]{0,300}»|"""
    r"""(?<!\w)'[^'\n]{1,300}'(?!\w)"""
)
# Words to work on, and not to live by.
_WORKED_ON = re.compile(
    r"(?:^|(?<=[.!?。！？]))[ \t]{0,8}+(?:please\s|请|帮我){0,3}+(?:translate|rewrite|rephrase|paraphrase|proofread|"
    r"polish|summari[sz]e|print|echo|output|翻译|改写|润色|校对|总结|朗读|输出|打印)[^:：\n]{0,40}[:：][^\n]*",
    re.MULTILINE | re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?:[^。！？!?；;\n.]|\.(?!\s|\Z))++[。！？!?；;.]*+")
_CLAUSE = re.compile(r"[,;:，；：—–]+|\s-+\s|\b(?:and|but|so|because)\b")
_OPENING = re.compile(
    r"""(?:[-*•#\s\d.)、]|
        \b(?:and|but|so|also|then|ok|okay|oh|hey|hi|hello|thanks|thank[ ]you|great|btw|by[ ]the[ ]way|please|pls|well|
           yes|right|important|reminder|kindly|(?:do[ ])?try[ ]to|(?:make|be)[ ]sure[ ](?:to|that[ ]you|you))\b[!,.\s]*|
        (?:另外|还有|对了|顺便|顺便说一句|请|請|麻烦|好的|好|嗯|那么|那|但是|不过|所以|然后|注意|重要|谢谢|你要|你|也)
    )+""",
    re.VERBOSE,
)

# ---- English

_LASTING_EN = re.compile(
    r"\b(?:from (?:(?:now|here)(?: on(?:wards?)?| forward)|(?:today|this (?:point|day|moment))(?: on(?:wards?)?|"
    r" forward)?)|"
    r"from (?:next )?\w+day on(?:wards)?|starting (?:today|tomorrow|now|next week|\w+day)|"
    r"going forward|henceforth|"
    r"in (?:the |all )?future)\b(?! (?:version|release|plan|work))"
)
_NOT_LASTING_EN = re.compile(
    r"\b(?:this (?:time|once)|just (?:this|once)|for (?:now|today|tonight|the (?:moment|time being))|"
    r"for this (?:one|task|file|commit|session|question|message|answer|pr|branch)|temporar(?:y|ily)|right now|"
    r"at the moment|only (?:once|today|this)|this (?:one )?only|today|tonight|tomorrow|yesterday|one-off|meanwhile|"
    r"until (?:then|tomorrow|further|i|we|the)|this (?:morning|afternoon|evening|week))\b"
)
_QUESTION_EN = re.compile(
    r"(?:what|who|whom|whose|which|where|why|how)\b(?! (?:ever|i (?:want|need|prefer)))|"
    r"when (?:do|does|did|is|are|was|were|will|would|can|could|should|shall|have|has)\b|"
    r"(?:is|are|am|was|were|does|did|can|could|will|would|should|shall|may|might|has|had|isn't|aren't|doesn't|didn't|"
    r"can't|couldn't|won't|wouldn't|shouldn't) (?:i|you|we|he|she|it|they|there|this|that|these|those|my|your|our|"
    r"the|"
    r"an?|some\w+|any\w+|every\w+)\b|(?:do|have|don't|haven't) (?:i|you|we|they|my|your|our)\b(?! ever)|"
    r"(?:tell me|explain|show me|i wonder|i(?:'d| would) like to know|let me know|i am not sure|i'm not sure) "
    r"(?:what|who|which|where|why|how|when|if|whether)\b"
)
# A condition goes; what it is a condition of stays. What is only imagined goes altogether.
_IMAGINED_EN = re.compile(
    r"(?:suppose|supposing|imagine|assume|assuming|pretend|what if|let's say|say we|let us say)\b"
)
_CONDITION_EN = re.compile(r"\b(?:if|unless|in case)\b[^,;:]*")
_REPORTED_EN = re.compile(
    r"\b(?!(?:i|we|you)\b)[\w']+ (?:said|says|wrote|writes|told|tells|claim(?:s|ed)?|thinks?|thought|"
    r"insist(?:s|ed)?|asked|asks|mentioned|suggest(?:s|ed)|recommend(?:s|ed)|argue[sd]?|want(?:s|ed))\b|"
    r"\baccording to\b"
)
_OTHERS_EN = re.compile(r"(?:he|she|they|his|her|their|its|some\w+|every(?:one|body)|people|there)\b")

# Doubt comes round again, so what is to be done in it holds for good.
_IN_DOUBT = re.compile(
    r"(?:if|when|whenever)\s(?:you're\s|you\sare\s|ever\s|something\sis\s)?(?:unsure|not\ssure|uncertain|in\sdoubt|"
    r"unclear)\b|"
    r"(?:如果|有|遇到|当)?(?:你|有)?(?:不确定|没把握|拿不准|不清楚|疑问)(?:的时候|的话|时|的地方)?[，,]?(?:就|先|请|"
    r"要|别|不要)?(?:问|停|告诉|跟我|和我|猜)"
)

# What is told with this is a report, and no setting.
_TROUBLE = re.compile(
    r"\b(?:errors?|fail(?:s|ed|ing)?|crash\w*|blank|broken|exception|segfaults?|stuck|flak\w*|unstable|unreliable|"
    r"hangs?|slow|bug|"
    r"(?:not|n't) work\w*|too (?:much|many|slow|long))\b|"
    r"报错|不稳定|出错|崩溃|空白|打不开|失败|不行|卡住|卡死|没反应|不工作|跑不起来|超时|太慢|太卡"
)

_HABIT = (
    r"(?:use|want|prefer|need|like|work|write|read|run|test|sign|deploy|review|commit|code|speak|keep|answer|expect|"
    r"start|develop|build|release|ship|host|target|support|follow|format|indent|name|document|pay|eat|drink|travel)"
)
_OWN = (
    r"(?:(?:full|first|last|middle|pen|real|legal|native|preferred|default|favou?rite|usual|e-?mail|work|home|"
    r"main)\s)*"
    r"(?:name|nickname|username|handle|pseudonym|alias|pronouns?|time\s?zone|signature|sign-?off|"
    r"e-?mail(?:\saddress)?|"
    r"language|mother\stongue|locale|editor|ide|os|operating\ssystem|shell|stack|role|job|profession|title|birthday|"
    r"phone(?:\snumber)?|employer|company|team|address|keyboard(?:\slayout)?|setup|working\shours|branch|database|"
    r"conventions?|style(?:\sguide)?|framework|code\s?base|repo(?:sitory)?|project)"
)
_WRONG = r"(?:not|broken|wrong|missing|failing|full|empty|down|gone|slow|being|still|too|so|done|ready)"
_ROLE = (
    r"(?:developer|engineer|programmer|designer|student|teacher|researcher|scientist|manager|analyst|architect|"
    r"writer|"
    r"author|editor|journalist|translator|lawyer|doctor|nurse|beginner|novice|native\sspeaker|freelancer|consultant|"
    r"administrator|admin|accountant|artist|musician|founder|vegan|vegetarian|musician|parent)"
)
_PLACE_EN = (
    r"(?:project|repo(?:sitory)?|code\s?base|team|company|app|application|service|back-?end|front-?end|product|ci|"
    r"api)"
)
# What somebody uses, and not what somebody works on by: a rule about it is a requirement of the product.
_PRODUCT = (
    r"(?:rows?|buttons?|pages?|inputs?|fields?|columns?|dialogs?|users?|customers?|forms?|menus?|icons?|cells?|views?|"
    r"screens?|players?|(?<!pull\s)(?<!merge\s)requests?|orders?|items?|tabs|links?|images?|passwords?|nodes?|"
    r"threads?|cards?)"
)
_NO_COMPLAINT = r"(?!.*\b(?:fails?|crash\w*|breaks?|errors?|hangs?|forget|segfaults?)\b)"
_OF_ITS_OWN = r"(?!it\b|this|that|these|those|your?\b|up\b|too\b|more\b|so\b|a\slot)"
# What the user asks for, for good.
_ASKED_EN = re.compile(
    rf"""
      (?!you\salways\s(?:forget|miss|break|ignore|make|get|do)\b)(?:you\s)?(?:(?:must|should|shall|need\sto|
          have\sto|are\sto)\s)?(?:always|never),?\s(?!mind\b|again\b|(?:saw|seen|had|heard|been|got|found|was|were|
          did|knew|been|the\ssame|like)\b|(?!need|feed|embed|seed|proceed|exceed)\w+ed\b|\w+[^su]s\b)\w
    | (?:do\snot|don't|dont)\s(?:you\s)?ever\b
    | (?:do\snot|don't|dont|no|only)\b.*,?\s(?:ever|always)\W*$
    | no\s\w+.*\b(?:anywhere|at\sall|at\sany\stime)\W*$
    | (?:use|avoid|don't|do\snot|keep|prefer|write|only|format|name|put|call|spell|follow)\b.*\b(?:everywhere|
        throughout|in\severything|(?:in|for|across)\s(?:all|this|our|my|the\swhole)\s{_PLACE_EN})\b
    | (?:whenever|(?:every|each|any)\s?time)\s(?:you|we|i\s(?:ask|say|write|send|mention|give|tell))\b{_NO_COMPLAINT}
    | for\s(?:every|each|any|all)\s[\w\s'/-]{{1,40}},{_NO_COMPLAINT}
    | (?:every|each|all|any)\s(?!(?:\w+\s)?{_PRODUCT}\b)[\w\s'/-]{{1,40}}?\s(?:must|should|has\sto|have\sto|needs?|
        shall|may\snot|cannot)\b(?!\s(?:be\s)?(?:pass|work|fixed|done|fine|ok|okay|ready)\b)
    | (?:remember|keep\sin\smind|bear\sin\smind|make\sa\snote|take\snote|memori[sz]e|don't\sforget|
        do\snot\sforget)(?:\W*$|\s(?:that|i|my|i'm|we|our|to\salways|to\snever)\b)
    | (?:you\s(?:can|may|should)\s)?(?:call|address)\sme\s(?!back|when|if|later|tomorrow|at|on|in|an?\b|the\b|again)\w
    | (?:i'd|i\swould)\s(?:prefer|rather)\b
    | (?:as\sa|by)\s(?:default|rule)\b\s*(?!\W*(?:it|the|this|there|i)\b) | default\sto\b
    | stop\s(?:using|adding|writing|putting|calling|asking|apologi[sz]ing|saying|making|giving|including|telling|
        suggesting|repeating|doing|explaining)\b
    | (?:you|we)\s(?:must|shall|mustn't|are\snot\sallowed|are\sforbidden|may\snot)\s(?!be\b|have\b)
    | (?:it\sis|it's|its)\s(?:forbidden|mandatory|prohibited|not\sallowed|a\srule)\b
    | make\s(?:it|that|this)\sa\s(?:rule|habit)\b
    | sign\s(?:my|our|all|every|off\s(?:my|all|every))\b
    | (?:only\s)?(?:answer|reply|respond|speak|talk|write)\s(?:(?:(?:to|with)\s)?me\s)?(?:only\s)?in\s(?:english|
        german|french|spanish|italian|portuguese|dutch|polish|russian|ukrainian|turkish|arabic|hindi|japanese|
        korean|chinese|mandarin|cantonese)\b
    """,
    re.VERBOSE,
)
# What the user says of themselves and of what they work on.
_STATED_EN = re.compile(
    rf"""
      (?:my|our)\s{_OWN}(?:\s(?:is|are|will\sbe)\b|'s\b|\suses?\b|\s=)(?!\s{_WRONG}\b)
    | (?:i|we)\s(?:always|never|only|usually|generally|normally|mainly|mostly|exclusively|currently)\s{_HABIT}\b
    | (?:i'm|i\sam)\s(?:[\w\s]{{1,30}},\s)?(?:an?\s(?:[\w/+#.-]+\s){{0,4}}?{_ROLE}\b|(?:colou?r-?\s?blind|dyslexic|
        deaf|blind|vegan|vegetarian|left-handed|allergic|based\sin|from\s(?!the|this|that|your?)|a\snative|
        not\sa\snative|new\sto)\b)
    | (?:we're|we\sare)\san?\s(?:[\w/+#.-]+\s){{0,4}}?(?:shop|team|company|startup|agency|studio|group)\b
    | i\s(?:live|work|study|teach|come)\s(?:in|at|for|from|as|nights?|days?|part|full|remote\w*)\b |
        i\s(?:only\s)?speak\b
    | (?:i|we)\s(?:(?:really|strongly|usually|generally|much|also|still|would|do)\s)*(?:prefer|like|love|hate|
        dislike|detest|can't\sstand|cannot\sstand|don't\slike|do\snot\slike)\s(?!it\b|this|that|these|those|your?\b|
        how\b|the\s(?:idea|way|result|new|first|second|look|\w+\s(?:one|version)))\w
    | i\s(?:use|code\sin|develop\s(?:in|on|with))\s{_OF_ITS_OWN}(?!the\b)\w
    | we\s(?:use|run|deploy|release|ship|host|target|support|follow|develop|code|test)\s{_OF_ITS_OWN}\w
    | (?:in\s)?(?:our|this|the)\s{_PLACE_EN},?\s(?:(?:we|only|always|never)\s)*(?:uses|use|follows?|targets?|
        requires?|runs\son|is\s(?:called|named|written\sin|based\son|built\s(?:on|with|in)|hosted|
        deployed))\b\s*{_OF_ITS_OWN}
    """,
    re.VERBOSE,
)

# What is pointed at is at hand, and what is wished of it holds for it alone.
_AT_HAND_EN = re.compile(
    rf"\b(?:this(?!\s(?:{_PLACE_EN}|house|family|home)\b)|these|those|yet|already|"
    r"(?:for|in|on|of|to|with|at|from|about|before|after)\s(?:that|it|them))\b|"
    r"\bthe\s(?:first|second|third|last|next|other|same|current|old|new)\b|"
    r"[\w-]\.(?:py|md|c|h|cc|cpp|ts|tsx|jsx|rs|go|java|kt|rb|php|html|css|json|ya?ml|toml|txt|sql|sh|csv|"
    r"(?<!node\.)(?<!next\.)js)\b"
)
_MANY = (
    r"(?!(?:this|its|is|was|has|does|as|us|yes|always|perhaps|news|less|unless|across|towards|besides)\b)[a-z][\w'-]*s"
)
_NAMED = r"(?:an?|the|this|that|these|those|it|its|them|him|her|his|my|me|your|any\s?more|more|one|so|too|yet|now)"
# Several of a kind, none of them pointed out: pull requests, default exports.
_KIND_OF_THING = rf"(?!{_NAMED}\b|(?:other|all|both|some|two|three)\b)(?:[\w'/+#.-]+\s){{0,3}}?{_MANY}\b"
_NOT = r"(?:do\snot|don't|dont|never|avoid|stop|refrain\sfrom)"
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun|week|work|holi)day"
_PART_OF_DAY = r"(?:morning|noon|afternoon|evening|night)"
# When it comes round again.
_AGAIN = (
    rf"(?:(?:every|each)\s(?:other\s|second\s|single\s)?(?:day|week|month|quarter|year|hour|weekend|{_DAY}|"
    rf"{_PART_OF_DAY})|(?:on|at)\s(?:{_DAY}s|\w+\sdays|weekends|(?:{_DAY}|weekend)\s{_PART_OF_DAY}s)|"
    rf"in\sthe\s{_PART_OF_DAY}s|"
    r"daily|nightly|weekly|monthly|once\sa\s(?:day|week|month)|twice\sa\s(?:day|week|month))\b"
)
_HOUSEHOLD = (
    r"(?:nursery|(?:bed|living|bath|dining)room|kitchen|hall|lights?|lamps?|heating|heater|thermostat|temperature|"
    r"radiators?|vacuum|blinds|shutters|curtains|doors?|windows?|"
    r"gate|tv|television|music|speakers?|volume|alarm|fan|sprinklers?|dishwasher|washing\smachine|dryer|oven|"
    r"coffee(?:\smachine)?|air\sconditioning|humidifier)"
)
_ROUND_THE_HOUSE = (
    r"(?:open|close|shut|lock|unlock|water|feed|turn|switch|dim|start|run|tell|send|remind|wake|play|check|heat|cool|"
    r"lower|raise|vacuum|clean|mop|empty|order|buy|brew|charge|read|give|post|take|put|let|set|walk|arm|disarm|"
    r"make\s(?:coffee|tea|breakfast|sure)|back\sup|update|summari[sz]e|report|review)"
)
_FAMILY_EN = (
    r"(?:(?:my|our|the)\s(?:\w+\s)?(?:wife|husband|spouse|partner|girlfriend|boyfriend|fianc[eé]e?|son|daughter|kids?|"
    r"child(?:ren)?|baby|toddler|twins|mother|father|mum|mom|dad|parents|brother|sister|grand\w+|gran|aunt|uncle|"
    r"niece|nephew|flatmates?|roommates?|dogs?|cats?)|mum|mom|dad|daddy|mummy|grandma|grandpa|granny)(?:\s(?!is|"
    r"has)\w+)?"
)
# What you say and write.
_WORDS_OF_YOURS = (
    r"(?:answers|replies|responses|explanations|messages|summaries|reports|comments|commits|reviews|"
    r"suggestions|e-?mails|outputs?|code|prose|writing|descriptions|translations|lists|plans|tests|patches|diffs|prs)"
)
_MANNER = (
    r"(?:use|keep|avoid|prefer|follow|stick\sto|name|spell|indent|capitali[sz]e|prefix|skip|omit|leave\sout|drop|limit)"
)
_SAYING = r"(?:write|format|sign|label|start|end|begin|finish|give|include|make|mention|show|put|add)"
# Things that a code base has many of, and rules about.
_PRACTICE = (
    r"(?:(?:unit|integration|new|public|private|commit|function|variable|class|file|branch|test|error|log|release|"
    r"feature|code|api|database|table|column|all|shell)\s)*(?:names?|messages|commits|functions|variables|classes|"
    r"files|"
    r"branches|tests|prs|pull\srequests|comments|docs|documentation|docstrings|secrets|credentials|"
    r"migrations|endpoints|dates|prices|times|timestamps|logs|imports|strings|constants|indentation|merges|releases|"
    r"headings|tickets|recipes|fixtures|hotfixes|scripts|modules)"
)
# What follows a condition is a wish where no subject begins it.
_NO_STATEMENT = (
    rf"(?!(?:it|i|we|you|they|he|she|there|the|this|that|an?|my|our|your|everything|nothing|everyone|{_MANY})\b)\w"
)
# What the user asks for of a whole kind of things or times.
_GENERAL_EN = re.compile(
    rf"""
    # a manner, with a quantifier or with what is ours
      (?:let's\s|let\sus\s)?{_MANNER}\b(?!\sit\b).*?\b(?:in|for|on|to|with|across|before|after|of|from|at)\s(?:all|
          every|each|any|our)\s(?!(?:of\s)?(?:the|these|those)\b|three\b|four\b|\d)\w
    | {_SAYING}\s.*\b(?:in|for|on|to|with|of)\s(?:all|every|each|any)\s(?:new|public)\s\w
    | (?:{_NOT}\s)?(?:use|show|give|write|prefer)\s.*\b(?:celsius|fahrenheit|metric|imperial|(?:24|12)-hour|euros|
        dollars|kilomet\w+|miles|inches|centimet\w+|grams|(?:first|last|full|real)\sname|nickname|(?:they|she|
        he)/\w+)\b
    | (?:run|test|lint|format|build|check|commit|squash|rebase|update|bump|ask)\b.*\b(?:before|after|on|with|
        at)\s(?:each|every|any|all)\s(?!of\b)\w
    | (?:use|prefer|stick\sto|stay\swith|write|keep|choose|go\sfor)\b.*\b(?:wherever|whenever|
        where(?:ver)?\spossible|whenever\spossible|as\sa\srule|in\sgeneral|by\sdefault)\b
    | (?:in\sgeneral|generally|as\sa\srule|normally|usually),?\s(?!(?:it|this|that|there|the|i)\b)\w
    | (?:prefer|favou?r)\s\S.*\b(?:over|to|rather\sthan|instead\sof)\s
    # a ban on a kind of things, or on what one would do without a word
    | {_NOT}\s(?!worry|bother|mind|forget)\w+(?:\s(?:up|on|off|out))?\s{_KIND_OF_THING}(?!\s(?:are|were|is)\b)
    | {_NOT}\s\w+\s.*\b(?:without\s(?:my\s|a\s)?\w+|anything|anyone|anybody|{_AGAIN})
    | {_NOT}\s\w+\s.*\b(?:when|while|whenever|after|before|during)\s(?:nobody|no\sone|someone|anyone|everyone|we're|
        we\sare|i'm|i\sam|people|guests|(?:\w+\s)?(?:\d|noon|midnight|dinner|lunch|breakfast|bedtime|naps?|dark|
        eight|nine|ten|eleven))
    | {_NOT}\s(?:apologi[sz]e|repeat|summari[sz]e|explain|thank|greet|praise|flatter|use|write|add|ask|
        suggest)\b.*\b(?:in|with|to|at\sthe\send\sof)\s(?:your|our|my)\b
    | no\s(?:more\s)?(?!(?:problems|worries|changes|results|issues|matches|differences|thanks|signs|
        tests)\b){_KIND_OF_THING}(?!\s(?:are|were|is|was|have|found|left|yet|passed|failed|match\w*)\b)(?!\W*(?:now|
        left|great)\b)
    | {_NOT}\s\w+\s.*\b(?:for|to|with|from|by|on|in)\s{_KIND_OF_THING}\W*$
    | only\s(?:touch|change|edit|use|read|commit|answer|show|buy|order|play|run)\s(?:{_KIND_OF_THING}|what|when|if)\b
    | leave\s{_KIND_OF_THING}\s(?:alone|untouched|as\sthey\sare)\b
    | (?:i\sdon't|i\sdo\snot)\s(?:want|like|expect)\s(?:you\s)?(?:to\s)?(?:{_KIND_OF_THING}|you\sto\s\w)
    | i\s(?:don't|do\snot)\swant\syou\sto\s\w
    | (?:i\s(?:want|expect)|i'd\slike)\s(?!to\b).*\b(?:everything|everywhere|everyone|at\sall\stimes)\b
    # a manner of answering and of writing
    | (?:please\s)?(?:be|stay|sound)\s(?:more\s|always\s|very\s)?(?:brief|concise|direct|honest|polite|terse|formal|
        casual|critical|strict|blunt|friendly|factual|quiet)\b
    | explain\s(?:things|everything|code|concepts|words|terms)\b
    | (?:all\s(?:\w+\s)?)?(?:{_WORDS_OF_YOURS}|{_PRACTICE})\s(?:only\s)?in\s(?:english|german|french|spanish|
        italian|chinese|japanese|(?:upper|lower|snake|camel|kebab)\W?case|markdown|plain)\b
    | (?:{_MANNER}|{_SAYING})\b.*\byour\s(?:\w+\s)?{_WORDS_OF_YOURS}\b
    | (?:keep|format|name|prefix)\s{_KIND_OF_THING}\s(?!of\b|from\b)\S
    | (?:talk|speak)\s(?:to|with)\sme\s(?:in|like|as)\b
    | (?:answer|reply|respond|explain\sthings)\s(?:me\s)?(?:briefly|concisely|shortly|tersely|without\s|
        in\s(?:plain|short|simple|full|complete|one\ssentence))
    | you\s(?:(?:don't|do\snot)\s(?:need|have)\sto|needn't)\s(?:always\s)?(?:summari[sz]e|apologi[sz]e|repeat|thank|
        greet|confirm|ask|praise|explain|justify)
    | (?:i\s(?:want|need|expect)|i'd\slike|i\swould\slike)\s(?:(?:all|every|any|each|your)\s(?:of\s)?(?:your\s|my\s|
        our\s)?(?:\w+\s)?(?:{_WORDS_OF_YOURS}|answer|reply|response|commit|function|file|name)s?\b|
        you\sto\s(?:always|never|.*\b(?:all|any|every|each|whenever|your|our)\b))
    | give\sme\sonly\s.*\bwhen\s
    | (?:write|treat|quote|give|show|list|put)\s{_KIND_OF_THING}\s(?:as|first|last|including|excluding|before|after)\b
    | i\s(?:need|want)\s.*\b(?:on|in|for|with)\s(?:all|every|any)\s\w
    | use\s(?!{_NAMED}\b)[\w'+.-]+(?:\s[\w'+.-]+)?\s(?:for|in|with|on|as)\s(?!.*\bthe\b){_KIND_OF_THING}
    | (?:use\s(?!.*\bfrom\b)|avoid\s|prefer\s){_KIND_OF_THING}\W*$
    | (?:write|give|send)\s{_KIND_OF_THING}\s(?:in|with|without|on)\s(?!.*\b(?:the|a|for)\b)\w
    | stick\s(?:to|with)\s(?!it\b|that|this|the\b)\w
    | (?:answer|reply|respond|write|talk|explain\sthings)\s(?:to\sme\s)?(?:like|as)\san?\s
    | (?:answer|reply|respond)\swith\s.*\bonly\b
    | {_NOT}\s(?:use|say|write|put)\sthe\s(?:words?|phrases?|terms?|passive|first\sperson)\b
    | {_NOT}\s(?!{_NAMED}\b)\w+\s(?!{_NAMED}\b)(?:\w+\s)?(?:data|information|code|prose|slang|jargon|humou?r|
        sarcasm|markdown|html|whitespace|music|meat|sugar|alcohol|plastic|spam)\W*$
    | (?:put|place|store|save)\s{_KIND_OF_THING}\s(?:in|under|into|below)\s(?!this|that)\w
    | no\s(?!(?:problem|luck|change|error|difference|output|response|idea|need|match|result|sign|way|reason|one|
        more)s?\b)(?:[\w-]+\s){{1,3}}?(?:after|before|during|on|at|without|in\sthe)\s(?!all\b|this|that|moment)\w
    | for\s(?:[\w-]+\s)?(?:code|work|breakfast|lunch|dinner|groceries|shopping|cooking|homework),\s{_NO_STATEMENT}
    | refer\sto\sme\sas\s
    | keep\s(?:the\s)?{_WORDS_OF_YOURS}\s(?:to|under|below|short|brief|simple|small)\b
    | {_NOT}\s\w+\s(?:my\s(?:\w+\s)?{_MANY}\b|me\s(?:while|when|before|after|during|on\s{_DAY}s))
    | (?:tag|label|mark|sign|number)\s{_KIND_OF_THING}\s(?:with|by|as|after)\b
    | (?:ping|text|call|mail|e-?mail|message|reach|contact)\sme\s(?:on|by|via|through)\s(?!{_DAY}\b|\d)\w
    | (?:check|read|consult|look\sat)\s.*\bbefore\s(?:you\s\w+|\w+ing)\s{_KIND_OF_THING}
    | (?:leave|keep)\s(?:the|a)\s.*\b(?:on|off|open|shut|closed|locked)\s(?:at\snight|overnight|during|when|while)\b
    | keep\sthe\s(?:[\w-]+\s){{1,3}}?(?:on|off|open|closed|shut|locked|low|clean|quiet)\W*$
    | {_NOT}\s\w+\s.*\bbetween\s\S.*\sand\s
    # a condition that comes round again
    | (?:tell|warn|notify|ping|alert|remind)\sme\s(?:when|if|whenever)\s(?:an?\s|any|some|we\srun|i\sforget)
    | when\si\ssay\s[^,]+,
    | whenever\s[^,]{{3,60}},{_NO_COMPLAINT}\s{_NO_STATEMENT}
    | (?:after|before)\s(?:each|every)\s[^,]{{2,40}},{_NO_COMPLAINT}\s{_NO_STATEMENT}
    | (?:{_ROUND_THE_HOUSE}|{_NOT}\s\w+)\s.*\b(?:when|whenever|while)\s(?:it\s(?:rains|snows|freezes|gets\s|
        is\s(?:hot|cold|dark|raining|sunny|windy))|nobody|no\sone|someone|anyone|{_KIND_OF_THING}\s(?:are|come|
        visit|stay|sleep)|i\s(?:sleep|work|leave|come\shome))
    | {_NOT}\s\w+\s(?:code|anything|text)\s(?:that\s)?you\s
    | (?:before|after|when|while|once)\s(?:you|we|i)\s(?!are|were|have|had|did)\w+\s(?:up\s|
        out\s)?(?:{_KIND_OF_THING}|anything|something|code|sql|
        \w+\sfor\sme)[^,]{{0,40}},{_NO_COMPLAINT}\s{_NO_STATEMENT}
    | (?:before|after|when|while)\s(?!you|we|i\b)\w+ing\s(?:{_KIND_OF_THING}|anything|something|
        code)[^,]{{0,40}},{_NO_COMPLAINT}\s{_NO_STATEMENT}
    | (?:by|with)\s\S.{{0,40}}\si\smean\s
    | (?:ask|check\swith|consult|warn|tell|notify)\s(?:\w+\s)?(?:first\s)?before\s(?:you\s)?(?!it|this|that)\w+
    | [\w-]+\sfirst,\s(?:and\s)?then\s\w+\W*$
    | for\s(?!starters|ages|years|days|hours|weeks|minutes|reasons)(?!\d){_KIND_OF_THING},\s{_NO_STATEMENT}
    # a time that comes round again
    | {_AGAIN}(?:\s(?:at|around|before|after|by)\s[\w:]+(?:\s?[ap]m)?)?,?\s(?:please\s)?{_ROUND_THE_HOUSE}\b
    | {_ROUND_THE_HOUSE}\b(?!.*\b(?:that|which|script|job|cron)\b).*\b{_AGAIN}
    | (?:the\s|our\s)?(?:[\w-]+\s){{0,3}}?{_HOUSEHOLD}\s(?:should|must|may|shall|can|has\sto|needs\sto|stays?|goes?|
        gets?)\b.*\b(?:after|before|during|at|between|while|when|whenever|from|by|{_AGAIN})\b
    """,
    re.VERBOSE,
)
# What is always so with the user, at home and at work.
_HABITUAL_EN = re.compile(
    rf"""
      i\sgo\sby\s(?!the\b|bus|car|train|bike|plane|foot)\w
    # what one does, told in the present: what happens just now is told otherwise
    | i\s(?:don't\s|do\snot\s|never\s)(?:eat|drink|smoke|drive|use|wear|own|read|write|speak|watch|work|cook|sleep|
        like|take)\s(?!it\b|this|that|the\b|these|those)\w
    | i\s(?:write|work|type|code|develop|pay|shop|train|swim|bake|collect|host|teach|study)\s(?:\w+\s)?(?:on|in|
        with|for|at|by|as)\s(?!it\b|this|that|the\b|these|those|your?\b)\w
    | our\s(?:[\w-]+\s){{1,2}}?(?:forbids?|requires?|uses?|prefers?|allows?|demands?|expects?|follows?|writes?|
        speaks?|deploys?|reviews?|supports?|covers?|lists?)\s(?!\d|this|that)\w
    | (?:i\s(?:take|drink|have|like|eat)\smy|we\s(?:take|drink|have|eat)\sour)\s\w+\s\w
    | all\s{_PRACTICE}\b.*\bare\s(?!{_WRONG}\b|green|red|passing|fine|ok\b|good|bad)\w
    | my\s(?:[\w-]+\s){{1,2}}is\s(?:called|named)\s | (?:i'm|i\sam)\son\san?\s(?:[\w-]+\s){{1,2}}diet\b
    | our\s[\w-]+\sis\s[\w-]+-free\b
    | (?:bedtime|breakfast|lunch|dinner|naptime|curfew|school)\b.*\bis\s(?!ready|cold|served|over|late|{_WRONG}\b)
    | (?:all|every)\s(?:[\w-]+\s){{1,3}}?(?:is|are)\s(?:tracked|kept|stored|logged|reviewed|documented|written|
        named|hosted|deployed)\s(?!wrong)
    | (?:the\s|our\s)?(?:[\w-]+\s){{0,2}}?{_HOUSEHOLD}\s(?:runs?|comes?\son|opens?|closes?|goes\soff)\s.*\b(?:after|
        before|at|{_AGAIN})
    | (?:people|friends|everyone|everybody|my\s\w+)\scalls?\sme\s(?!back|later|when)\w
    | my\s(?:[\w-]+\s){{0,2}}(?:handle|account|nick(?:name)?|user\s?name|login|pronouns|birthday)\s(?:is|
        are)\s(?!{_WRONG}\b)
    | (?:i'm|i\sam)\san?\s(?:\w+\s)?(?:night\sowl|early\s(?:bird|riser)|morning\sperson)
    | (?:i|we)\s(?:always|never|only|usually|generally|normally|mostly)\s(?!saw|had|got|get|found|did|was|were|knew|
        said|thought|heard|went|made|came|took|ran|see|need|know|have|want|end\sup|agree|\w+ed\b)\w+\s\w
    | i\s(?:drive|ride|get\sup|wake\sup|eat|drink|play|speak|sleep|cook|commute|own|wear|smoke)\s\w
    | (?:i'm|i\sam)\s(?:(?:lactose|gluten)\W?\w+|diabetic|pregnant|retired|\w+\syears\sold)\b
    | \w+\s(?:is|are)\s(?:my|our)\s(?:wife|husband|partner|son|daughter|dog|cat|boss|doctor|landlord|cleaner|nanny|
        tutor|vet)s?\b
    | (?:i|we)\shave\s(?:an?|two|three|four|\d+)\s(?:\w+\s)?(?:dogs?|cats?|kids|child(?:ren)?|sons?|daughters?|
        cars?|bathrooms?|bedrooms?|floors?|gardens?|babies|baby)\b
    | (?!writ|add|creat|build|implement|generat|mak|schedul)[^,]{{0,60}}\b(?:on\s(?:{_DAY}s|weekends)|at\sweekends)\b
    | (?:the\s)?(?:kids|children|guests|pets)\s(?:can|may|must|should|are\s(?:not\s)?allowed)\b
    | (?:quiet|working|office|opening|sleeping)\s(?:hours|times?)\s(?:are|is)\s
    | [\w\s-]{{2,30}}\s(?:is|are)\s(?:mandatory|forbidden|required\sfor|banned|off\Wlimits|taboo|not\sallowed|
        a\smust|the\srule)\b
    | (?:{_PRACTICE}|tasks|bugs|issues|reviews|code\sreviews|backups|invoices|meetings)\s(?:are|get)\s(?:tracked|
        kept|stored|logged|reviewed|documented|done|planned|discussed|hosted|deployed|held)\s
    | (?!{_PRODUCT}\b){_KIND_OF_THING}\s(?:should|must)\s(?!pass|work|have\sbeen)\w
    | our\s(?:[\w-]+\s)?(?:linter|formatter|bundler|test\srunner|package\smanager|orm|ci|cloud|provider|registry|
        cluster|tracker|wiki|vet|doctor|dentist|landlord|cleaner|wifi|car)\s(?:is|lives|runs)\s(?!{_WRONG}\b)
    | we(?:'re|\sare)\son\s(?!the\b|it\b|a\b|our\b|that)[\w.+\#/-]+(?:\s[\w.+\#/-]+){{0,3}}?\s?v?\d
    | we\s(?:don't|do\snot)\s(?!need|have|know|see|get|want|care|think|understand|mind|remember)\w+
    | we\s(?!need|have|got|get|saw|are|were|had|can|could|should|will|would|might|may|must|always|only|never|
        usually|want|see|wish|hope|lost|love|like|think|know|found|made|did|do|went|came|said|tried|agree|look|just|
        still|meet|talk|discuss|leave|start|stop|finish|begin|forgot|ran|took|wrote|also|then|both|
        all)(?!\w+ed\b)[a-z]+\s(?!to\b|that|it\b|about\b)\w
    | our\s(?:[\w/-]+\s){{1,3}}?(?:uses?|runs?\s(?:on|in|under)|lives?\s(?:in|on)|follows?|targets?|speaks?|
        is\s(?:written|hosted|deployed|built|based|called|no\s|that\s|on\s|always|never))
    | our\s(?:api|back-?end|server|services?|endpoints)\s(?:speaks?|returns?)\s(?!\d|null|nothing|an?\b|the\b)
    | our\s(?:{_PLACE_EN}|family|household|office)\s(?!has\b|is\b|was\b|needs\b|wants\b|gets\b|does\b)[a-z]+s\s
    | our\s(?:[\w-]+\s)?(?:rule|policy|convention|agreement)s?\s(?:is|are|says?)\b
    | {_FAMILY_EN}\s(?:(?:is|are)\s(?:vegan|vegetarian|allergic|diabetic|lactose|dyslexic|colou?r\W?blind|coeliac|
        celiac|afraid|left-handed|deaf|blind|called|named|an?\s|\d|(?:\w+\s)?(?:years|months)\sold)
        | (?:has|have)\s(?:an?\s(?:\w+\s){{0,2}}(?:allergy|intolerance|condition)|asthma|diabetes|piano|football|
            school|swimming|practice)
        | (?:can't|cannot|must\snot|mustn't|doesn't|don't|never|always|only)\s(?:get|hear|see|walk|eat|drink|like|
            have|stand|speak|watch|wake|sleep)
        | (?:likes?|loves?|hates?|dislikes?|prefers?|speaks?)\s(?!it\b|this|that|the\s|you\b)
        | (?:goes|go|takes?|gets?|wakes?|sleeps?|eats?|works?|needs?|leaves?|comes?|starts?|naps?|has|
            have)\b.*\b(?:at\s\w|after\s(?:breakfast|lunch|dinner|school|work)|before\s(?:breakfast|lunch|dinner|
            bed|school)|{_AGAIN})
      )
    | (?:all|every|each|any|no)\s(?!(?:\w+\s)?{_PRODUCT}\b)(?:[\w'/-]+\s){{1,4}}?(?:gets?|goes|go|belongs?|lives?|
        starts?|ends?|carr(?:y|ies)|comes?\swith)\s(?!back|away|lost)\S
    | {_PRACTICE}\s(?:(?:always|never|only|generally)\s)?(?:go|goes|lives?|belongs?|uses?|gets?|starts?|ends?|
        follows?|stays?|(?:should|must|shall|may)(?:\snot)?|(?:don't|do\snot|doesn't)\s(?:belong|go|need|get|use|
        have)|(?:is|are)\s(?:always|never|in\s(?!the\sway)|at\smost|written|named|kept|prefixed|signed|squashed|
        short|plural|singular|private|upper|lower|\w+[-_]?case|\w+_case|\d))\s?\S
    | (?!the\b|this|it\b|that|they)(?:[\w'-]+\s){{1,4}}?(?:should|must)\s(?:always|never|not\sever)\s
    """,
    re.VERBOSE,
)

# ---- Chinese

_FROM_ZH = (
    r"(?:从|從|打|自)(?:现在|現在|今天|今|此|这次|本次|下次|这里|明天|明年|这周|本周|下周|这个?月|下个?月|"
    r"下个?版本|周[一二三四五六日]|\d+月\d*[日号]?)"
    r"(?:起|开始|開始|以后|往后)"
)
_LASTING_ZH = re.compile(
    rf"(?:我们?)?(?:以后|以後|今后|今後|往后|往後|日后|此后|{_FROM_ZH})"
    r"(?!再(?!也)|有空|会|會|将|可能|也许|或许|应该会|打算|想|看看|还|呢|的(?!.*(?:都|一律|要|用|写|统一|必须|"
    r"不要|别)))(?:.|$)"
    r"|[^\s说讲让叫]{1,8}(?:以后|以後|今后|往后)(?:都|一律|别|不要|不准|要|请|只|必须|统一)"
)
_NOT_LASTING_ZH = re.compile(
    r"这次|這次|这一次|这回|本次|今天|今晚|今早|明天|昨天|刚才|剛才|现在先|暂时|暫時|临时|臨時|目前先|一次性|"
    r"仅此|就一次|只此一次|这一轮|这轮|"
    r"眼下|等会|待会|稍后|一会儿|^先"
)
_QUESTION_ZH = re.compile(
    r"吗|嗎|呢\W*$|怎么|怎麼|怎样|如何|为什么|為什麼|为何|什么|什麼|哪[些个里儿种天位]|几[个时点次]|多少|谁|誰|是否|"
    r"(.)不\1|有没有|能否|可否|要不|还是说"
)
_ASKS_ZH = re.compile(r"(?:给我)?(?:解释|说明|讲讲?|说说|告诉我)(?:一?下)?(?:为什么|怎么|什么|如何|为何|哪|谁)")
_NO_QUESTION_ZH = re.compile(
    r"(?:不管|无论|不论|任何)[^，,]*|(?:说明|解释|写明|写清|注明|讲清|告诉我|列出|描述|记录)[^，,]*"
)
# What a text or a function that is to be made shall say or do is no wish of how things are done.
_MADE_ZH = re.compile(r"(?:帮我)?(?:写|生成|起草|编|拟|做|创建|实现|添?加|定义)一?[份个篇条段首封张]")
_IMAGINED_ZH = re.compile(r"假设|假定|设想|想象")
_CONDITION_ZH = re.compile(r"(?:如果|假如|要是|倘若|若是|万一|除非)[^，,；;：:]*|[^，,；;：:]*的话")
_OTHERS = (
    r"(?:他|她|它|他们|她们|它们|老板|领导|经理|客户|用户|同事|朋友|老师|对方|有人|人家|别人|产品|甲方|"
    r"网上|(?:文档|文章|教程|书|手册)(?=里|上|中|说|写|提|建议|要求))"
)
_REPORTED_ZH = re.compile(
    rf"(?:我们?的?)?{_OTHERS}|(?![我你请再别不每都只跟和用必永始从]|以后|今后|往后)\S{{1,4}}?(?:说(?![明话法])|"
    rf"表示|认为|写道|写着|提到|提示|警告|报告说)"
)

_TROUBLE_ZH = (
    r"(?:返回\s?\d|有|要?(?:能|可以|支持|显示|校验|居中|对齐|填)|很|会|卡|失败|报|崩|出错|出现|超时|慢|挂|丢|这样|"
    r"一样|没|不行|不对|是|在|忘|说)"
)
_OWN_ZH = (
    r"(?:名字|姓名|全名|昵称|网名|笔名|英文名|中文名|署名|签名|落款|時區|时区|邮箱|电话|职业|专业|母语|生日|性别|"
    r"代词|公司|团队|"
    r"操作系统|系统|编辑器|技术栈|主力语言|称呼)"
)
_WORKPLACE = r"(?:项目|專案|仓库|代码库|工程|团队|公司|组|部门)"
_TOPIC_ZH = (
    r"(?:签名|署名|落款|注释|回答|回复|回覆|日期|时间|文件名|变量名|函数名|命名|文档|提交信息|代码|邮件|日志|"
    r"输出|格式|语气|标题|接口|"
    r"测试|提交|改动|报告)"
)
_NO_TASK_ZH = r"(?!这|那|该|此|写|加|做|实现|给|修|改|把|帮|生成|创建|添加)"
_ASKED_ZH = re.compile(
    rf"""
      (?:每次|每回|每当|每一次|凡是|凡|所有|任何|每个|每条|每份|每天|每周|一切)(?=.*(?:都|要|必须|先|不要|不能|不得|
          别|应|得|一律))(?!.*都{_TROUBLE_ZH})(?!.*(?:才[能会行可]|(?<![行好以])了\W*$))
    | (?:我们?)?(?:永远|始终|总是|總是|一直|务必|務必|千万)(?!{_TROUBLE_ZH})(?:都|要|得|用|使用|先|不|别|保持|以|按|
        给|把|在.*前)
    | .{{1,10}}(?:时|时候|前|后|之前|之后)(?:总是|始终|一律|都要|都得|必须|务必|永远)
    | (?:不要再|不要总|别再|別再|别总|不准|不许|(?:禁止|严禁)(?!\S\S的)|切勿|绝不|绝对不|绝对要|再也不要|不得|只准|
        只许)
    | {_NO_TASK_ZH}[^，]{{0,16}}(?:一律|一概|统一(?:用|使用|采用|按|写|以))
    | {_NO_TASK_ZH}[^的，]{{0,12}}必须(?!是.*了\W*$)(?!.*(?:的\W*$|才[能会行]|帮我|实现|加上|加个|加一个|做个|
        做一个|写个|写一个|改一下))
    | .{{0,12}}{_TOPIC_ZH}[^，]{{0,4}}(?:都(?:用|写|要|按|以|带|署)|不得|只(?:用|写)|不准|不许)(?!了)
    | .+(?:长期有效|永久有效|一直如此|成为惯例|作为惯例)
    | (?:记住(?!我[这那的]|我?的?(?:复选|选项|按钮|功能))|記住|记下|记一下|记着|牢记|谨记|帮我记)(?!密码|用户|登录|
        了\W*$)
    | 记得(?:我|每次|以后|都|总是|永远)
    | (?:大家)?(?:都)?(?:叫我|称呼我|喊我|管我叫)
    | (?:默认|預設|缺省)(?:情况下)?(?:都|先|用|使用|采用|以|按|不|输出|返回|回复)
    | (?:都|只)?用(?:中文|英文|英语|日文|日语|法语|德语|繁体中文|简体中文|粤语|韩语|俄语|意大利语|葡萄牙语|阿拉伯语|
        越南语|泰语|西班牙语)(?:回答|回复|回覆|交流|跟我|和我|写)
    """,
    re.VERBOSE,
)
_STATED_ZH = re.compile(
    rf"""
      (?:我们?的?)?{_OWN_ZH}(?:是|叫|为|用|写|统一|改成|在|[：:])(?!不|空|错)
    | 我(?:叫|姓)(?!你|他|她|它|车|外卖|人|不|醒|什|了)
    | 我是(?:一名|一位|一个|个|做|搞|学|教|左撇子|色盲|色弱|素食|.{{0,12}}(?:工程师|开发|开发者|程序员|设计师|学生|
        老师|教师|医生|律师|作者|作家|经理|研究员|人)\W*$)
    | 我今年.{{1,4}}岁
    | 我(?:住在|住|来自|在.{{1,8}}(?:工作|上班|生活|时区|区)|对.{{1,8}}过敏|不吃|吃素|的?母语|只(?:会|懂|用)|
        不会(?:说|讲|用))
    | 我们?(?:更|比较|最|特别|很|非常|平时|通常|一般|一直|都|还是|其实|真的|不太?)*(?!.*[这那][个种版款])(?:喜欢|
        喜歡|讨厌|討厭|偏好|偏爱|习惯|習慣|倾向|爱用|受不了)(?!这|那|你|它|了)
    | (?:我|我们|咱们|我司)(?:都|只|统一|目前|平时|通常|一般|主要|一直)*(?:用|使用|采用|不用)(?!了|过|一[^律]|半|两|
        几|这|那|你|它|他|下|来|不|完|到)\s*\S
    | (?:这个|本|该|我们|我们的|咱们|咱们的|我的?)?{_WORKPLACE}(?:里|内)?(?:的(?:主分支|默认分支|技术栈|代码风格|
        规范|数据库|命名)(?:是|叫|为|用)|(?:都|统一|一律|只|目前|现在)*(?:用|使用|采用|是用|基于|跑在|部署在|遵循|
        要求|规定|不用)(?!不|了|过|完|到)|[^，]{{0,6}}(?:从不|都不|不(?=用|发|做|写|准|许|允许|接|收|上班|加班|部署|
        提交)))
    """,
    re.VERBOSE,
)

# What is pointed at, or was begun, is at hand.
_AT_HAND_ZH = re.compile(
    r"\w\.(?:py|md|ts|js|c|go|rs|java|html|css|json|ya?ml|txt|sql|sh)(?![a-z])|"
    r"这[个里儿段句行份封张条块处边些次回]|那[个里儿段句行份封张条块处边些次首只台道]|[这那](?:文件|函数|接口|"
    r"分支)|为这|它|"
    r"上面|下面|刚才|第[一二三四五六七八九十\d]|上次|现在|(?<!最)先(?:别|不|留|放)|还没|我?回来|"
    r"(?<!就行)(?<!就好)了\W*$|吧\W*$"
)
_PARTS_OF_DAY_ZH = r"(?:早上|早晨|清晨|上午|中午|下午|傍晚|晚上|夜里|半夜|凌晨|晚饭后|睡前|早|晚)"
_AGAIN_ZH = r"(?:每(?:天|日|晚|早|夜|周|週|月|年|季度|小时|隔|逢|到)|每个?(?:工作日|周末|星期|礼拜|月|早上|晚上|周))"
# A time that may come once or again: what is wished for it tells which.
_TIME_ZH = (
    rf"(?:(?:工作日|周末|节假日|上学日|上班日|休息日|平日|平时|周[一二三四五六日天](?!起|开始))(?:{_PARTS_OF_DAY_ZH})?|"
    rf"{_PARTS_OF_DAY_ZH}?[一二三四五六七八九十\d]{{1,3}}[点點](?:半|多|整)?(?:以后|之后|后|以前|之前|前|到))"
)
_WISHED = (
    r"(?:不要|别|別|不用|不必|不能|不得|不准|不许|避免|勿|尽量|请|都(?!是|在|没)|一律|统一|只|记得|提醒我|"
    r"叫\S{1,3}起床|不(?:开会|部署|发布|上线|出门|上班|工作|营业|吃|喝|接|看|用(?!了)))"
)
_ROOM_ZH = r"(?:客厅|卧室|厨房|玄关|阳台|书房|浴室|走廊|车库|空调|暖气|热水器|扫地机器人|窗帘|灯光|夜灯|电视|音箱)"
_REQUIREMENT_ZH = r"(?:支持|居中|显示|保留|能|可|排序|校验|跳转|对齐|高亮|为空|重复|超过|包含|小于|大于|相同|先登录|变)"
# Things that are written or said again and again.
_PRACTICE_ZH = (
    r"(?:回答|回复|回覆|解释|说话|讲话|注释|代码|变量名?|函数名?|类名|文件名|分支名?|命名|缩进|提交(?:信息|说明|记录)?|"
    r"接口|字段|单元测试|集成测试|测试|文档|报告|邮件|日志|密钥|密码|配置|依赖|日期|时间|价格|金额|单位|图表?|标题|"
    r"菜谱|清单|购物清单|输出|格式|语气|错误信息|报错文案|文案|表名|列名|脚本|迁移脚本|示例|总结)"
)
_FAMILY_ZH = (
    r"(?:我们?家?的?)?(?:爸爸?|妈妈?|爷爷|奶奶|外公|外婆|姥姥|姥爷|老婆|老公|妻子|丈夫|太太|女儿|儿子|孩子|宝宝|"
    r"女朋友|男朋友|哥哥|姐姐|弟弟|妹妹|爱人|室友|双胞胎|猫|狗|家里人)"
)
_FIRST_ASK = (
    r"(?:问我|问过我|问一下我|征得我|征求我|经过?我|(?:跟|和|同)我(?:说|商量|确认|打招呼)|给我(?:看(?!看|一下)|"
    r"过目)|告诉我|"
    r"通知我|"
    r"让我(?:看|确认))"
)
# What the user asks for of a whole kind of things or times.
_GENERAL_ZH = re.compile(
    rf"""
    # a manner of answering and of writing
      {_NO_TASK_ZH}(?:[^，的]{{0,6}}的?)?{_PRACTICE_ZH}(?:我|你)?(?:的时候|时|里面?|中|上|得|
          要)?(?:的[^，]{{1,4}})?(?:尽量|一律|统一|全部?|都(?![\s\w]*(?:过|对|好|行|是对))|(?:要|得)(?!和|跟|覆盖|
          重)|控制在|不超过|默认|放在?|(?:前面|后面|开头|结尾|末尾)要?(?:加|带|写)|写(?!一|个|完(?!整)|好|得)|用|以|
          按|走|不要|别|不用|不能|不得|避免|简[短单洁]|直接|少|多|只|保持)(?!删|动|管|改|了|完|到|加上|
          {_REQUIREMENT_ZH})
    | (?:跟|和|对|给)我(?:讲话|说话|聊天|解释(?!一?下)|回复?|发|讲|写).*(?:用|要|别|不要|尽量|简)
    | (?:尽量|最好|优先|尽可能)(?!再|快|早|马上|今|明|修|帮)\S
    | (?:多|少)(?:用|写|说)(?!一|点|个)\S.*(?:少|多)(?:用|写|说|加)
    # a ban
    | (?:不要|别|別|不用|不必|勿|避免)(?:用|使用|采用|直接|随便|随意|擅自|私自|自己|自作主张|自动(?!生)|轻易|贸然|
        编造|杜撰|推荐|在[^，]{{0,6}}[周天日点时晚早夜]|给我|跟我|叫我|对我|喊我|打扰|贴|解释|总结|道歉|重复|客套|
        啰嗦|展开|猜|写(?=.*(?:注释|废话))|加(?:注释|表情|多余|无用|废话))
    | (?:不要|别|別|不能|勿)(?:动|碰|改|提交|推送?到)[^，]{{0,16}}(?:目录|文件夹|分支|生产|线上|主干|main|master|
        里的东西|配置|自动生成)
    | (?:不要|别|別)(?!动|删|改|急|忘|管|担心|重启|合并|停|走|关|跑|运行|推|发布|提交|包含|碰|客气|怕|着急|紧张|
        .*其[他它])\w{{3,}}\W*$
    | [^，]{{2,6}}[里中上]?(?:不要|别|別)(?:写|放|用|加|出现|混)(?!进去|了)\w
    | [^，的]{{1,8}}(?:永远|始终|从来)(?:不要|别|不得|要|都要)\w
    | [^，]{{1,10}}了[^，]{{0,6}}就(?:要|得|必须)\w
    | 一个[^，]{{2,8}}只(?:做|含|改|放|管|写)\w
    | [^，]{{2,6}}(?:不用|不必|无需)(?:写|加|跑|测|更新)\w
    | (?:晚上|夜里|白天)[^，]{{0,8}}(?:留着|开着|关着|亮着)
    | 少(?:用|写|说|加|放|吃|喝)(?!了|一|点)\w | \w{{0,8}}坚持(?!不)\w | \w{{2,8}}平时\w
    | [^，]{{3,14}}(?<![好完成])就(?:告诉|提醒|通知|叫)我
    | [^，]{{1,14}}(?:不能|不得|不可以?|不准|不要|别)(?:写|放|提交|传|存|带|混|留)(?:进|入|到|在|死)
    # a time, or an occasion, that comes round again
    | (?!写|加|做|实现|生成|创建|添加)[^，]{{0,5}}{_AGAIN_ZH}(?!.*都(?!要|得|必须|不|用|检查|把|记得|去|
        会议))(?!.*(?:脚本|任务|程序|函数|功能)\W*$)\S
    | (?!写|加|做|实现|生成|创建|添加)[^，]{{0,5}}{_TIME_ZH}[^，]{{0,6}}{_WISHED}
    | {_ROOM_ZH}[^，]{{0,8}}(?:保持|不要|别|一直|始终|不能)(?!动|管)
    | 每次[^，]{{1,12}}[前后](?!都{_TROUBLE_ZH})\S
    | (?!开始|继续|动手|完成|小)[^，]{{1,14}}(?:(?:之|以)?前(?:要|得|都要|必须|至少)|(?:的时候|时候|时|期间|时间|
        之前|以前|前|以后|之后|后|完)(?:不要|别|別|不用|不必|不准|(?:一定)?先(?!看)|请|尽量|一律|提醒我|记得))
    | (?:(?:睡|出门|开会|下班|吃饭|起床|离家|回家)之?[前后]|进门)[^，]{{0,8}}(?:提醒|把|关|开|锁|检查|打开|要|别|
        不要|请|换|脱)
    | (?:下次|下回)[^，]{{1,14}}(?:前|先|要|别|不要|用|请|记得)
    | (?:遇到|碰到|一旦|只要|但凡)[^，]{{1,20}}，?(?:就|都要|要|先|别|不要|请)(?!卡|崩|死|报|挂|闪|黑|白|没|会|是|
        能|可|出)
    | [^，]{{2,14}}(?:先|[之以]前){_FIRST_ASK}
    # a kind of things
    | (?!给|把|让|写|加|检查|列|找|看|改|修)[^，的]{{1,12}}都(?:用|按|以|放|写|加|带|走|记在|存在|发到|归|得|
        要)(?!了|完|到|过)
    | (?!给|把|让|写|加|帮)[^，]{{2,12}}(?:要|得|必须)(?:附上?|带上?|写明|配|注明|经过)
    | [^，]{{0,8}}用(?:摄氏度?|华氏度?|公制|英制|二十四小时制|24\s?小时制|克|厘米|毫米|英寸|公里|人民币|欧元|美元|
        北京时间|utc)
    | 用?[^，]{{1,10}}的(?:语气|口吻|口气)
    | [^，]{{2,10}}由[^，]{{1,8}}(?:负责|处理|审核|保管)
    | [^，]{{1,8}}越(?!快|早).{{1,3}}越好
    | (?:宁可|宁愿)\S
    | (?:下雨|下雪|天黑|有人|没人|刮风|日落|日出|太热|太冷)(?:了|时|的时候|以?后)?(?:就|请|要|把|别|不要)
    | 每[个次条份轮][^，]{{1,10}}(?:结束|完成|开始)?之?[前后](?!都{_TROUBLE_ZH})\S
    | 新(?!闻|手|年)的?[^，]{{1,6}}(?:放在?|写在?|用|走)(?!了|好|不)\w
    | 像[^，]{{1,12}}(?:那样|一样)地?(?:回答|说|写|解释|跟我|回)
    | [^，]{{1,8}}优先(?!级)\w
    | (?:我们?)?(?:出门|离家|回家|睡觉|起床|到家|进门|下班)(?:了|时|后|的时候)?就\w
    | 新(?!闻|手|年)[^，]{{1,5}}(?:都要|要|必须|得)(?!{_REQUIREMENT_ZH})\S
    | [^，]{{1,10}}(?:永远|始终|一直)(?:是|在|放|保持)
    | 不(?:买|喝|收|养|抽|加班|熬夜|开会)\S
    | 能[^，]{{1,10}}就(?:不|别|用|尽量)
    | 我说的(?!是)[^，]{{1,10}}(?:指|就是)
    | [^，的]{{1,8}}(?:统统|全都|通通|一概)\S
    """,
    re.VERBOSE,
)
# What is always so with the user, at home and at work.
_HABITUAL_ZH = re.compile(
    rf"""
      (?:可以)?(?:叫我|称呼我|喊我|管我叫)
    | 我们?的[^，]{{0,14}}(?:账号|帐号|用户名|网名|邮箱|编辑器|昵称)(?:是|叫)
    | 我(?:更|比较|一向|向来|一直)?(?:偏向|偏好|倾向|爱(?=用|吃|喝|看|穿))
    | 我(?:平时|一般|通常|平常|工作日|周末|每天|每周|每晚|从不|从来不|向来)(?!见|没)\S
    | (?:我们|咱们)(?:家|组|团队|公司|部门|这边|这儿)?[^，]{{0,8}}(?:从不|一般|通常|(?:不|只|都)(?=用|写|做|发|接|
        收|买|吃|喝|看|开(?!会|始)|上班|加班|部署|提交|合并|养|抽|过|在(?!乎|等|讨)|给|跑|走|按|说|支持|推))\S
    | (?:我们?|咱们)?家里?(?:有|没有|养)(?!没|事|问题|人)\S
    | 我(?:喝|吃)[^，了过]{{1,6}}(?:不|要|只|从不)(?:加|放|蘸|带|配)
    | 我(?:主要|多半|大多|基本上?)(?:写|用|做|吃|走|坐|看)\s*\w
    | 我[^，]{{1,6}}都(?:用|刷|走|坐|吃|喝|穿|去)(?!了|过)\w
    | 我(?:正)?在(?:低\w饮食|减肥|戒\w|备孕|控糖)
    | (?:我们|咱们)每[个次条份天周]\w
    | 我不(?:吃|喝|抽|戴|坐|住|熬夜|用)(?!了|下|完|到|出|懂|清|明)\w
    | 我总(?:是)?(?:想先|要先|喜欢|习惯|先)\w
    | (?:我们|咱们)(?:办公室|公司|学校|店里?|家)?(?:周[一二三四五六日天]|星期[一二三四五六日天]|
        [一二三四五六七八九十]{{1,3}}点)\w{{2,}}(?<!了)\W*$
    | 我(?:听力|视力|眼睛|耳朵|腰|膝盖|记性|身体)不[好行太]
    | 我(?:开(?=.*车)|骑|养|戴|穿(?=.*码)|抽烟|不抽烟|不喝酒)\S
    | (?:我们|咱们)(?!需要|想|要|得|应该|可以|能|来|走|先)(?:家|组|团队|公司|部门|项目|仓库|
        这边)?的?[^，]{{1,12}}?(?:是|用|以|按|叫|走|放在?|遵循|规定)(?!了|不|什|一下|第|哪|[坏空红绿好错对]的)\s*\w
    | (?:我们|咱们)的?[^，]{{0,6}}(?:环境|服务器?|仓库|代码|数据库|文档|镜像|办公室)(?:都|放|跑|部署)?在\S
    | {_FAMILY_ZH}[^，]{{0,10}}(?:周[一二三四五六日天]|星期|色盲|左撇子|吃素|过敏|不吃|不喝|不能[吃喝碰]|喜欢|讨厌|
        怕|岁|糖尿病|高血压|习惯|每|只(?:有|能)|[点點]半?\w{{0,6}}(?:睡|起|上床|上学|放学|吃|喂|遛)|叫(?!我|你|一|
        个)|[早晚午]饭后|属)
    """,
    re.VERBOSE,
)


def standing_setting(text: str) -> str:
    """Return the first sentence of a user's message that looks like a standing setting, '' when there is none.

    That is who they are, what they work with, what they prefer, what holds from now on, always or never; in English or
    Chinese. Questions, quotations, code, logs, what is imagined, what others say, and what is meant for now are none.
    At most 200 characters are quoted. Takes time linear in the text.

    >>> standing_setting("谢谢！以后都用中文回答。"), standing_setting("中文怎么配置？")
    ('以后都用中文回答。', '')
    """
    own = _LINES.sub(lambda found: "\n" * len(found.group()), text)
    for hidden in (_QUOTED, _WORKED_ON):
        own = hidden.sub(lambda found: _FILLER * len(found.group()), own)
    own = own.replace("’", "'")
    looked_at: set[str] = set()
    for found in _SENTENCE.finditer(own):
        sentence = found.group()
        if not _SHORTEST_SENTENCE <= len(sentence) <= _LONGEST_SENTENCE or sentence in looked_at:
            continue
        looked_at.add(sentence)
        if _is_standing(sentence):
            said = " ".join(text[found.start() : found.end()].split())
            return said if len(said) <= QUOTED_CHARACTERS else said[: QUOTED_CHARACTERS - 1] + "…"
    return ""


def _is_standing(sentence: str) -> bool:
    """Tell whether a clause of a sentence is a standing setting, and nothing in the sentence speaks against it."""
    said = _unopened(sentence.lower())
    if said.rstrip().endswith(("?", "？")) or _is_question(said):
        return False
    if _IMAGINED_EN.match(said) or _IMAGINED_ZH.match(said) or _REPORTED_ZH.match(said) or _OTHERS_EN.match(said):
        return False
    if _IN_DOUBT.match(said):
        return True
    said = _CONDITION_ZH.sub("", _CONDITION_EN.sub("", said))
    passing = (
        bool(_MADE_ZH.match(said))
        or bool(_NOT_LASTING_EN.search(said))
        or bool(_NOT_LASTING_ZH.search(_without_beginnings(said)))
    )
    trouble = bool(_TROUBLE.search(said))
    at_hand = bool(_AT_HAND_EN.search(said)) or bool(_AT_HAND_ZH.search(said))
    for clause in _clauses(said):
        if _REPORTED_EN.search(clause) or _REPORTED_ZH.match(clause):
            return False
        if _is_lasting(clause):
            return True
        if not passing and (_ASKED_EN.match(clause) or _ASKED_ZH.match(clause)):
            return True
        if not passing and not at_hand and (_GENERAL_EN.match(clause) or _GENERAL_ZH.match(clause)):
            return True
        if not passing and not trouble and (_STATED_EN.match(clause) or _STATED_ZH.match(clause)):
            return True
        if not passing and not trouble and not at_hand and (_HABITUAL_EN.match(clause) or _HABITUAL_ZH.match(clause)):
            return True
    return False


def _clauses(said: str) -> Iterator[str]:
    """Yield the sentence as a whole, then each clause behind the first, without what opens it."""
    yield said
    for border in _CLAUSE.finditer(said):
        yield _unopened(said[border.end() :])


def _unopened(said: str) -> str:
    """Return what is said behind the words that only open it, such as thanks."""
    said = said.lstrip()
    opening = _OPENING.match(said)
    return said[opening.end() :] if opening else said


def _is_lasting(clause: str) -> bool:
    head = _CLAUSE.split(clause, maxsplit=1)[0]
    if _LASTING_ZH.match(clause) and not _NOT_LASTING_ZH.search(_without_beginnings(head)):
        return True
    found = _LASTING_EN.search(clause)
    return bool(found) and not re.search(r"\b(?:might|may|could|will|would|plan\w*)\b", clause)


def _without_beginnings(said: str) -> str:
    """Leave out from when something holds: a day that is named there is no day on which it ends."""
    return re.sub(_FROM_ZH, "", said)


def _is_question(said: str) -> bool:
    if _QUESTION_EN.match(said) or _ASKS_ZH.match(said):
        return True
    return bool(_QUESTION_ZH.search(_NO_QUESTION_ZH.sub("", said)))
