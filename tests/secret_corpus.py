"""Made-up secrets and harmless lines, the same for the same seed. Nothing in here was ever a key of anything."""
# ruff: noqa: E501 (a sample is a line)

import base64
import json
import random
import string
import uuid
from collections.abc import Callable, Iterator
from typing import NamedTuple

ALNUM = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"
URLSAFE = ALNUM + "-_"
BASE64 = ALNUM + "+/"


class Line(NamedTuple):
    """A text and the secret in it."""

    kind: str
    secret: str
    text: str


def secrets(seed: int = 1, each: int = 12) -> Iterator[Line]:
    """Yield lines with one secret each: `each` of every kind, in ever other surroundings."""
    made = random.Random(seed)
    for kind, make in TOKENS.items():
        for number in range(each):
            token = make(made)
            wrap = AROUND[(number + made.randrange(3)) % len(AROUND)]
            yield Line(kind, token, wrap(made, token))
    for kind, make_line in LINES.items():
        for _ in range(each):
            secret, text = make_line(made)
            yield Line(kind, secret, text)


def harmless(seed: int = 2, count: int = 2000) -> Iterator[str]:
    """Yield lines without a secret: hashes, ids, prose in five languages, code, settings, logs, paths."""
    made = random.Random(seed)
    for number in range(count):
        yield HARMLESS[number % len(HARMLESS)](made)


# ---- secrets by form


def some(made: random.Random, letters: str, count: int) -> str:
    return "".join(made.choices(letters, k=count))


def token(prefix: str, letters: str, low: int, high: int = 0, suffix: str = "") -> Callable[[random.Random], str]:
    return lambda made: prefix + some(made, letters, made.randint(low, high or low)) + suffix


def jwt(made: random.Random) -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    claims = json.dumps({"sub": some(made, string.digits, 10), "iat": made.randrange(10**9)}).encode()
    return ".".join((head, base64.urlsafe_b64encode(claims).decode().rstrip("="), some(made, URLSAFE, 43)))


def identity(made: random.Random) -> str:
    number = f"{made.randint(110000, 659000)}{made.randint(1950, 2010)}{made.randint(1, 12):02}{made.randint(1, 28):02}"
    number += f"{made.randrange(1000):03}"
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return number + "10X98765432"[sum(int(d) * w for d, w in zip(number, weights, strict=True)) % 11]


def password(made: random.Random) -> str:
    words = ("summer", "Dragon", "kitten", "Winter", "monkey", "Tiger", "sunshine", "coffee", "Berlin", "panda")
    shapes = (
        lambda: made.choice(words) + some(made, string.digits, made.randint(2, 5)),
        lambda: some(made, ALNUM, made.randint(8, 20)) + made.choice(string.digits),
        lambda: made.choice(words) + made.choice("!@#%-_.+") + some(made, string.digits, 4),
        lambda: (
            "".join(made.choice(words).replace("e", "3").replace("o", "0") for _ in range(2))
            + made.choice("0123456789")
        ),
    )
    return made.choice(shapes)()


TOKENS: dict[str, Callable[[random.Random], str]] = {
    "openai": token("sk-", ALNUM, 40, 48),
    "openai project": token("sk-proj-", URLSAFE, 40, 120),
    "anthropic": token("sk-ant-api03-", URLSAFE, 80, 95),
    "stripe": lambda made: made.choice(("sk_live_", "rk_live_", "pk_test_")) + some(made, ALNUM, 24),
    "github": lambda made: f"gh{made.choice('pousr')}_{some(made, ALNUM, 36)}",
    "github fine": lambda made: f"github_pat_{some(made, ALNUM, 22)}_{some(made, ALNUM, 59)}",
    "gitlab": token("glpat-", URLSAFE, 20),
    "aws id": lambda made: made.choice(("AKIA", "ASIA")) + some(made, UPPER, 16),
    "google": token("AIza", URLSAFE, 35),
    "google client": token("GOCSPX-", URLSAFE, 28),
    "slack": lambda made: f"xox{made.choice('bpars')}-{some(made, string.digits, 12)}-{some(made, ALNUM, 24)}",
    "telegram": lambda made: f"{made.randint(10**8, 10**10 - 1)}:AA{some(made, URLSAFE, 33)}",
    "discord": lambda made: f"M{some(made, ALNUM, 25)}.{some(made, ALNUM, 6)}.{some(made, URLSAFE, 38)}",
    "jwt": jwt,
    "npm": token("npm_", ALNUM, 36),
    "pypi": token("pypi-AgEIcHlwaS5vcmc", URLSAFE, 60, 120),
    "hugging face": token("hf_", string.ascii_letters, 34),
    "sendgrid": lambda made: f"SG.{some(made, URLSAFE, 22)}.{some(made, URLSAFE, 43)}",
    "twilio": lambda made: made.choice(("SK", "AC")) + some(made, HEX, 32),
    "shopify": lambda made: f"shp{made.choice(('at', 'ca', 'pa', 'ss'))}_{some(made, HEX, 32)}",
    "digitalocean": token("dop_v1_", HEX, 64),
    "databricks": token("dapi", HEX, 32),
    "age": token("AGE-SECRET-KEY-1", UPPER, 58),
    "identity number": identity,
}  # fmt: skip

WORDS = ("我的密钥是", "旧的是", "发给小王：", "备份在", "请记住", "用完删", "不要外传", "新申请的", "钥匙")
AROUND: tuple[Callable[[random.Random, str], str], ...] = (
    lambda made, t: t,
    lambda made, t: made.choice(WORDS) + t,
    lambda made, t: t + made.choice(WORDS),
    lambda made, t: made.choice(WORDS) + t + made.choice(WORDS),
    lambda made, t: f"please use {t} for the deployment.",
    lambda made, t: json.dumps(
        {"id": made.randrange(99), "value": t, "note": "明天换"}, ensure_ascii=made.random() < 0.5
    ),
    lambda made, t: f"export THING='{t}' && ./run.sh",
    lambda made, t: f"curl -H 'X-Thing: {t}' https://api.example.com/v1/items",
    lambda made, t: f"service:\n  name: web\n  value: {t}\n  retries: 3",
    lambda made, t: f"https://example.com/a/{t}/b",
    lambda made, t: f"(see <{t}>, from 2026-03-0{made.randint(1, 9)})",
    lambda made, t: f"2026-01-02T03:04:05Z INFO client: sent {t}, got 200",
)

# ---- secrets by name


def pem(made: random.Random) -> tuple[str, str]:
    kind = made.choice(("RSA ", "EC ", "OPENSSH ", "", "ENCRYPTED "))
    rows = [some(made, BASE64, 64) for _ in range(made.randint(3, 14))] + [some(made, BASE64, 30) + "=="]
    body = "\n".join(rows)
    shape = made.randrange(4)
    if shape == 0:
        return body, f"the key:\n-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----\nkeep it"
    if shape == 1:  # cut short
        return body[:-40], f"-----BEGIN {kind}PRIVATE KEY-----\n{body[:-40]}"
    if shape == 2:  # its beginning is gone
        return body[70:], f"{body[70:]}\n-----END {kind}PRIVATE KEY-----"
    line = f"-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----"
    return body.replace("\n", "\\n"), json.dumps({"type": "service_account", "key": line, "uri": "https://example.com"})


def address(made: random.Random) -> tuple[str, str]:
    secret = made.choice((password(made), some(made, ALNUM, 16), "p%40" + some(made, ALNUM, 8)))
    scheme = made.choice(("postgres", "mysql+pymysql", "redis", "amqp", "mongodb+srv", "https", "ftp"))
    user = made.choice(("", "admin", "app-user", "u"))
    host = made.choice(("db.internal:5432/app", "localhost/0", "10.0.0.7:6379", "h"))
    wrap = made.choice(("{}", "DATABASE_URL={}", "连到{}就行", "url: {}  # main", '{{"url": "{}"}}'))
    return secret, wrap.format(f"{scheme}://{user}:{secret}@{host}")


def parameter(made: random.Random) -> tuple[str, str]:
    secret = some(made, ALNUM, made.randint(10, 40))
    name = made.choice(
        ("api_key", "access_token", "token", "sslpassword", "sig", "X-Amz-Signature", "client_secret", "apikey")
    )
    tail = made.choice(("", "&lang=en", "#top", " now", "，请查收"))
    return secret, f"https://api.example.com/v2/items?page=2&{name}={secret}{tail}"


def header(made: random.Random) -> tuple[str, str]:
    if made.random() < 0.5:
        secret = base64.b64encode(f"user:{password(made)}".encode()).decode()
        return secret.rstrip("="), made.choice(("Authorization: Basic {}", "-H 'authorization: basic {}' -v")).format(
            secret
        )
    secret = some(made, URLSAFE, made.randint(24, 60)) + "7"
    wrap = made.choice(
        ('"Authorization": "Bearer {}"', "Authorization: Bearer {}", "curl -H 'Authorization: Bearer {}' x")
    )
    return secret, wrap.format(secret)


def assignment(made: random.Random) -> tuple[str, str]:
    secret = password(made)
    name = made.choice((
        "password", "PASSWORD", "db_password", "DB_PASSWORD", "passwd", "Passwd", "secret", "CLIENT_SECRET", "api key",
        "API_KEY", "api-key", "apiKey", "access token", "ACCESS_TOKEN", "auth_token", "authToken", "MYSQL_ROOT_PASSWORD",
        "spring.datasource.password", "secret_key", "AWS_SECRET_ACCESS_KEY", "HEROKU_API_KEY", "CLOUDFLARE_API_TOKEN",
    ))  # fmt: skip
    wrap = made.choice((
        "{n}={s}", "{n} = {s}", "{n}: {s}", 'export {n}="{s}"', '{{"{n}": "{s}", "port": 80}}', "  {n}: '{s}'",
        "const {n} = '{s}';", "set {n}={s} and restart", "{n}={s}，记得改", 'os.environ["{n}"] = "{s}"', "-e {n}={s} image",
    ))  # fmt: skip
    return secret, wrap.format(n=name, s=secret)


def word(made: random.Random) -> tuple[str, str]:
    secret = made.choice(("swordfish", "opensesame", "letmein", "correcthorse", "Butterblume", "tintenfass"))
    return secret, made.choice(("password={}", "password: {}", '{{"password": "{}"}}', "DB_PASSWORD={}")).format(secret)


def session(made: random.Random) -> tuple[str, str]:
    secret = some(made, HEX, made.choice((32, 40, 64)))
    return secret, made.choice(
        ("SESSION={}", "Cookie: sessionid={}; theme=dark", "session_token: {}", "PHPSESSID={}")
    ).format(secret)


def aws_secret(made: random.Random) -> tuple[str, str]:
    secret = some(made, BASE64, 40)
    return secret, made.choice(
        ("aws_secret_access_key = {}", '"SecretAccessKey": "{}"', "AWS_SECRET_ACCESS_KEY={}")
    ).format(secret)


def uuid_key(made: random.Random) -> tuple[str, str]:
    secret = str(uuid.UUID(int=made.getrandbits(128)))
    return secret, made.choice(("HEROKU_API_KEY={}", "api_key: {}", '{{"client_secret": "{}"}}')).format(secret)


def azure(made: random.Random) -> tuple[str, str]:
    secret = some(made, BASE64, 86)
    return (
        secret,
        f"DefaultEndpointsProtocol=https;AccountName=shop;AccountKey={secret}==;EndpointSuffix=core.windows.net",
    )


def webhook(made: random.Random) -> tuple[str, str]:
    digits, secret = some(made, string.digits, 18), some(made, URLSAFE, 68)
    slack = f"T{some(made, UPPER, 8)}/B{some(made, UPPER, 10)}/{some(made, ALNUM, 24)}"
    hook = str(uuid.UUID(int=made.getrandbits(128)))
    return made.choice((
        (secret, f"https://discord.com/api/webhooks/{digits}/{secret}"),
        (slack, f"通知发到https://hooks.slack.com/services/{slack}即可"),
        (hook, f"https://open.feishu.cn/open-apis/bot/v2/hook/{hook}"),
        (hook, f"https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={hook}"),
    ))  # fmt: skip


def chinese(made: random.Random) -> tuple[str, str]:
    secret = made.choice((password(made), made.choice(("夏天", "春节", "小猫", "北京")) + some(made, string.digits, 4)))
    wrap = made.choice((
        "数据库密码是{}", "密码：{}", "密码: {}", "服务器的口令是{}，别忘了", "wifi密码为{}", "新密码改成{}了", "管理员密码设置为{}。",
        "登录密码“{}”", "密碼是{}",
    ))  # fmt: skip
    if secret[0] > "z" and "“" in wrap:
        wrap = "密码是“{}”"
    return secret, wrap.format(secret)


def code(made: random.Random) -> tuple[str, str]:
    secret = some(made, string.digits, 6)
    wrap = made.choice(
        ("验证码{}", "【银行】您的验证码是{}，5分钟内有效", "your verification code is {}.", "OTP: {}", "验证码：{}")
    )
    return secret, wrap.format(secret)


def card(made: random.Random) -> tuple[str, str]:
    digits = made.choice("45") + made.choice("12345") + some(made, string.digits, 13)
    total = sum(sum(divmod(2 * int(d), 10)) for d in digits[0::2]) + sum(int(d) for d in digits[1::2])
    digits += str(-total % 10)
    if made.random() < 0.5:
        return digits, f"card number {digits}, exp 12/29"
    grouped = made.choice(" -").join(digits[place : place + 4] for place in range(0, 16, 4))
    return grouped, f"付款卡 {grouped}"


LINES: dict[str, Callable[[random.Random], tuple[str, str]]] = {
    "private key": pem, "address": address, "parameter": parameter, "header": header, "assignment": assignment,
    "assignment again": assignment, "word": word, "session": session, "aws secret": aws_secret, "uuid key": uuid_key,
    "azure": azure, "webhook": webhook, "chinese": chinese, "chinese again": chinese, "code": code, "card": card,
}  # fmt: skip

# ---- harmless

PROSE = (
    "The deployment takes {n} minutes because the tests run twice.", "Please reset the password before Friday, {name}.",
    "The password is required and must be at least {n} characters long.", "She lost the key to the secret garden.",
    "We rotate every token each {n} days; ask {name} for a new one.", "Token: a unit of text, about four characters.",
    "{name} said the session is over at {n}:30 and the code freeze begins.", "My password manager is Bitwarden.",
    "The secret: add a pinch of salt.", "Secret Santa: {name} draws first.", "The API key is kept in the vault.",
    "Authorization: ask {name} first.", "Password: required. Username: optional.", "password is wrong, try again",
    "忘记密码怎么办", "密码学是数学和计算机科学的分支", "密码必须至少{n}位，包含字母和数字", "请输入验证码", "密码：必填",
    "这个令牌的有效期是{n}天", "密钥管理由运维负责，找{name}申请", "口令不能为空", "密码长度为8-{n}位", "密码是什么？",
    "验证码错误次数超过{n}次", "我们用 pnpm 部署，每周{n}次", "{name}的密码过期了，需要重置", "密码错误，请重试",
    "Das Passwort muss mindestens {n} Zeichen lang sein.", "Der Schlüssel liegt bei {name} im Büro, Zimmer {n}.",
    "Bitte das Kennwort ändern, bevor die Sitzung endet.", "Le mot de passe doit contenir {n} caractères.",
    "Le jeton expire après {n} jours, demandez à {name}.", "La clé se trouve chez {name}.", "Mot de passe : obligatoire",
    "La contraseña debe tener {n} caracteres.", "El token caduca en {n} horas.", "Contraseña: obligatoria",
    "パスワードを忘れた場合は{name}に連絡してください", "会議は{n}時からです", "パスワード: 必須",
)  # fmt: skip
CODE = (
    "token = get_token()", "password = os.environ['DB_PASSWORD']", "password: ${DB_PASSWORD}", "password: <your password>",
    "api_key = settings.API_KEY", 'const token = localStorage.getItem("token");', "def login(user: str, password: str) -> None:",
    "if (password.length < 8) throw new Error('too short');", "secret: process.env.SECRET,", "self.token = token",
    "func New(password string, token *Token) (*Client, error) {", "let session = Session::new(config.session_id);",
    "max_tokens=4096, temperature=0.2", "token_count: 1{n}", "SELECT password_hash FROM users WHERE id = {n};",
    "connect(host=host, user=user, password=password)", "password=********", "Authorization: Bearer <token>",
    "headers = {'Authorization': f'Bearer {token}'}", "password VARCHAR(255) NOT NULL,", "kubectl get secret db-creds -o yaml",
    "echo $API_KEY", "export API_KEY=$(cat key.txt)", "secretName: web-tls", "import secrets; secrets.token_hex(16)",
    "type Props = { password: string; token?: string }", "auth: true", "pass # nothing to do", "tests: {n} pass, 2 skipped",
    "input[type=password] { color: #33{n}333; }", "assert token == expected_token", "private_key_path: /etc/ssl/private/web.pem",
    "PWD=/home/{name}/project{n}", "# password: see the vault", "session.commit()", "key: value{n}", "primary_key: user_id",
    "git commit -m 'Fix password reset'", "x = task-management-and-planning", "disk-usage-report-for-the-week-{n}",
    "- risk-assessment-and-mitigation-plan", "token: Optional[str] = None", "password=args.password", "cookie: SameSite=Lax",
    "passwordField.setText(\"\")", "login(password=getpass.getpass())", "Bearer tokens are described in RFC 6750.",
    "basic auth: disabled", "secret_key_base: <%= ENV['SECRET'] %>", "password: '{{ vault_password }}'", "token=$TOKEN",
)  # fmt: skip
NAMES = ("Ann", "Bob", "小王", "Jürgen", "Chloé", "Iñaki", "田中", "Olga")


def filled(lines: tuple[str, ...]) -> Callable[[random.Random], str]:
    def line(made: random.Random) -> str:
        return made.choice(lines).replace("{n}", str(made.randint(10, 99))).replace("{name}", made.choice(NAMES))

    return line


def digest(made: random.Random) -> str:
    size = made.choice((32, 40, 64, 128))
    value = some(made, HEX, size)
    wrap = made.choice((
        "COMMIT={}", "commit {}", "sha256:{}", "{}  dist/app-1.2.tar.gz", "image@sha256:{}", "etag: \"{}\"", "md5={}",
        "checksum {} ok", "integrity={}", "git checkout {}", "提交{}已合并", "https://github.com/a/b/commit/{}",
    ))  # fmt: skip
    return wrap.format(value)


def identifier(made: random.Random) -> str:
    value = made.choice((
        str(uuid.UUID(int=made.getrandbits(128))), str(uuid.UUID(int=made.getrandbits(128))).upper(),
        some(made, string.digits, made.choice((10, 13, 16, 17, 19))), some(made, "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 26),
        f"req_{some(made, ALNUM, 14)}", f"toolu_{some(made, ALNUM, 24)}", f"msg_{some(made, ALNUM, 22)}",
        f"cus_{some(made, ALNUM, 14)}", f"i-0{some(made, HEX, 16)}", f"arn:aws:iam::{some(made, string.digits, 12)}:role/web",
    ))  # fmt: skip
    wrap = made.choice(
        ("id={}", "request_id: {}", "trace {}", "订单{}已发货", '{{"id": "{}"}}', "session_id={}", "{}", "user {} left")
    )
    if wrap == "session_id={}" and "-" not in value:
        wrap = "span={}"
    return wrap.format(value)


def log(made: random.Random) -> str:
    address = ".".join(str(made.randrange(256)) for _ in range(4))
    return made.choice((
        f"2026-02-{made.randint(1, 28):02} 10:{made.randrange(60):02}:01,{made.randrange(999)} INFO server - GET /api/items?page={made.randrange(50)}&sort=name 200 {made.randrange(900)}ms",
        f"Mar  {made.randint(1, 9)} 08:00:00 host sshd[{made.randrange(9999)}]: Failed password for root from {address} port {made.randrange(65000)} ssh2",
        f"level=warn msg=\"token expired\" user={made.choice(NAMES)} ttl={made.randrange(900)}s",
        f"[pid {made.randrange(9999)}] auth: accepted publickey for deploy from {address}",
        f"npm WARN deprecated request@2.88.{made.randrange(9)}: see https://github.com/request/request/issues/3142",
        f"Traceback: File \"/usr/lib/python3.11/site-packages/app/session.py\", line {made.randrange(400)}, in open",
        f"nginx: {address} - - [02/Feb/2026:10:00:00 +0000] \"POST /login HTTP/1.1\" 302 {made.randrange(900)}",
        f"ERROR: password authentication failed for user \"app{made.randrange(9)}\"",
    ))  # fmt: skip


def path(made: random.Random) -> str:
    return made.choice((
        f"/home/{made.choice('abc')}/projects/web-{made.randrange(99)}/src/token_bucket.py", r"C:\Users\ann\secrets\readme.txt",
        f"https://docs.example.com/en/v{made.randrange(9)}/auth/tokens.html#bearer", f"s3://bucket-{made.randrange(99)}/2026/01/data.parquet",
        f"git@github.com:team/repo-{made.randrange(99)}.git", f"https://example.com/search?q=password+manager&page={made.randrange(9)}",
        f"./node_modules/@types/password-hash/index{made.randrange(9)}.d.ts", "ssh://git@host.example.com:22/team/repo.git",
        "https://example.com/reset-password?lang=en", f"docker pull registry.example.com:5000/team/app:1.{made.randrange(99)}.0",
    ))  # fmt: skip


def data(made: random.Random) -> str:
    raw = base64.b64encode(made.randbytes(made.randint(30, 120))).decode()
    return made.choice((
        f"data:image/png;base64,iVBORw0KGgo{raw}", f"<img src='data:image/gif;base64,{raw}'>", f"ssh-ed25519 AAAA{raw} ann@host",
        f"integrity sha512-{raw}", "-----BEGIN CERTIFICATE-----\n" + raw + "\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\n" + raw + "\n-----END PUBLIC KEY-----", f"tel +49 30 {some(made, string.digits, 8)}",
        f"{made.random():.17f} {made.random():.17f}", f"IBAN-like DE{some(made, string.digits, 4)} moved {made.randrange(10**6)} units",
        f"lat {made.uniform(-90, 90):.14f}, lon {made.uniform(-180, 180):.14f}", f"ts={made.randint(10**15, 2 * 10**15)}",
        json.dumps({"a": [made.randrange(10**6) for _ in range(5)], "b": made.choice(NAMES), "ok": True}),
    ))  # fmt: skip


HARMLESS = (filled(PROSE), digest, filled(CODE), identifier, filled(PROSE), log, filled(CODE), path, data)
