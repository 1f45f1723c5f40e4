"""What English says of standing settings: patterns for one clause each, in lower case; see `core.reminders`."""

import re

LASTING = re.compile(
    r"\b(?:from (?:(?:now|here)(?: on(?:wards?)?| forward)|(?:today|this (?:point|day|moment))(?: on(?:wards?)?|"
    r" forward)?)|"
    r"from (?:next )?\w+day on(?:wards)?|starting (?:today|tomorrow|now|next week|\w+day)|"
    r"going forward|henceforth|"
    r"in (?:the |all )?future)\b(?! (?:version|release|plan|work))"
)
NOT_LASTING = re.compile(
    r"\b(?:this (?:time|once)|just (?:this|once)|for (?:now|today|tonight|the (?:moment|time being))|"
    r"for this (?:one|task|file|commit|session|question|message|answer|pr|branch)|temporar(?:y|ily)|right now|"
    r"at the moment|only (?:once|today|this)|this (?:one )?only|today|tonight|tomorrow|yesterday|one-off|meanwhile|"
    r"until (?:then|tomorrow|further|i|we|the)|this (?:morning|afternoon|evening|week))\b"
)
QUESTION = re.compile(
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
IMAGINED = re.compile(r"(?:suppose|supposing|imagine|assume|assuming|pretend|what if|let's say|say we|let us say)\b")
CONDITION = re.compile(r"\b(?:if|unless|in case)\b[^,;:]*")
REPORTED = re.compile(
    r"\b(?!(?:i|we|you)\b)[\w']+ (?:said|says|wrote|writes|told|tells|claim(?:s|ed)?|thinks?|thought|"
    r"insist(?:s|ed)?|asked|asks|mentioned|suggest(?:s|ed)|recommend(?:s|ed)|argue[sd]?|want(?:s|ed))\b|"
    r"\baccording to\b"
)
OTHERS = re.compile(r"(?:he|she|they|his|her|their|its|some\w+|every(?:one|body)|people|there)\b")


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
_PLACE = (
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
ASKED = re.compile(
    rf"""
      (?!you\salways\s(?:forget|miss|break|ignore|make|get|do)\b)(?:you\s)?(?:(?:must|should|shall|need\sto|
          have\sto|are\sto)\s)?(?:always|never),?\s(?!mind\b|again\b|(?:saw|seen|had|heard|been|got|found|was|were|
          did|knew|been|the\ssame|like)\b|(?!need|feed|embed|seed|proceed|exceed)\w+ed\b|\w+[^su]s\b)\w
    | (?:do\snot|don't|dont)\s(?:you\s)?ever\b
    | (?:do\snot|don't|dont|no|only)\b.*,?\s(?:ever|always)\W*$
    | no\s\w+.*\b(?:anywhere|at\sall|at\sany\stime)\W*$
    | (?:use|avoid|don't|do\snot|keep|prefer|write|only|format|name|put|call|spell|follow)\b.*\b(?:everywhere|
        throughout|in\severything|(?:in|for|across)\s(?:all|this|our|my|the\swhole)\s{_PLACE})\b
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
STATED = re.compile(
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
    | (?:in\s)?(?:our|this|the)\s{_PLACE},?\s(?:(?:we|only|always|never)\s)*(?:uses|use|follows?|targets?|
        requires?|runs\son|is\s(?:called|named|written\sin|based\son|built\s(?:on|with|in)|hosted|
        deployed))\b\s*{_OF_ITS_OWN}
    """,
    re.VERBOSE,
)

# What is pointed at is at hand, and what is wished of it holds for it alone.
AT_HAND = re.compile(
    rf"\b(?:this(?!\s(?:{_PLACE}|house|family|home)\b)|these|those|yet|already|"
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
_FAMILY = (
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
GENERAL = re.compile(
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
    | (?:be|stay|sound)\s(?:more\s|always\s|very\s)?(?:brief|concise|direct|honest|polite|terse|formal|
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
HABITUAL = re.compile(
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
    | our\s(?:{_PLACE}|family|household|office)\s(?!has\b|is\b|was\b|needs\b|wants\b|gets\b|does\b)[a-z]+s\s
    | our\s(?:[\w-]+\s)?(?:rule|policy|convention|agreement)s?\s(?:is|are|says?)\b
    | {_FAMILY}\s(?:(?:is|are)\s(?:vegan|vegetarian|allergic|diabetic|lactose|dyslexic|colou?r\W?blind|coeliac|
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
