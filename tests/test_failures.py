"""Failures that are one kind have one signature, others have another (C6, C8.12)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphmem.core import failures
from graphmem.core.failures import SIGNATURE_CHARACTERS, check_failure, parted


def signature(tool, text):
    """The signature of a text; a tool without a name has one too."""
    told, _ = parted(text)
    return failures.signature(tool, told)


def sample(text):
    return check_failure("t", text).sample


TRACEBACK = 'Traceback (most recent call last):\n  File "{}", line {}, in {}\n    {}\n{}'

PYTEST = """============================= test session starts ==============================
platform linux -- Python 3.{minor}.4, pytest-8.3.2, pluggy-1.5.0
rootdir: /srv/{root}
collected {count} items

tests/test_errors.py ....                                                [ 44%]
tests/test_{file}.py F..                                                 [100%]

=================================== FAILURES ===================================
___________________________________ test_{test} ___________________________________

    def test_{test}():
>       {code}

tests/test_{file}.py:{count}: in test_{test}
E   {error}
=========================== short test summary info ============================
FAILED tests/test_{file}.py::test_{test} - {error}
========================= 1 failed, {count} passed in 0.{count}s =========================
"""
UNITTEST = """..F...
======================================================================
FAIL: test_{test} (tests.Sums.test_{test})
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/a/t.py", line {count}, in test_{test}
    self.assertEqual(1, {count})
AssertionError: 1 != {count}

----------------------------------------------------------------------
Ran {count} tests in 0.001s

FAILED (failures=1)
"""
NPM = """> shop@1.0.{count} build
> vite build

npm ERR! code ENOENT
npm ERR! syscall {call}
npm ERR! path /srv/{count}/package.json
npm ERR! {error}

npm ERR! A complete log of this run can be found in:
npm ERR!     /root/.npm/_logs/2026-09-{count}T08_00_00_000Z-debug-0.log
"""
CARGO = """   Compiling thiserror v1.0.{count}
   Compiling shop v0.1.0 (/srv/shop)
error[{code}]: {error}
 --> src/main.rs:{count}:5
  |
{count} |     let x = y;
  |             ^ not found in this scope

For more information about this error, try `rustc --explain {code}`.
error: could not compile `shop` (bin "shop") due to {count} previous errors
"""
GCC = """cc -O2 -c -o build/{file}.o src/{file}.c
src/{file}.c: In function 'main':
src/{file}.c:{count}:9: warning: unused variable 'i' [-Wunused-variable]
src/{file}.c:{count}:12: error: {error}
   12 |     foo(bar;
      |            ^
make[1]: *** [Makefile:{count}: build/{file}.o] Error 1
make: *** [Makefile:3: all] Error 2
"""
GO = """=== RUN   TestSum
--- PASS: TestSum (0.00s)
=== RUN   {test}
    sum_test.go:{count}: got 1, want {count}
--- FAIL: {test} (0.{count}s)
FAIL
exit status 1
FAIL\texample.com/sum\t0.00{count}s
"""
DOCKER = """#1 [internal] load build definition from Dockerfile
#1 DONE 0.{count}s
#7 [3/5] RUN pip install -r requirements.txt
#7 {count}.2 Collecting flask
------
ERROR: failed to solve: {error}
"""
JEST = """PASS src/error.test.js
FAIL src/{file}.test.js
  ● sums › {test}

    expect(received).toBe(expected)

    Expected: {count}
    Received: 1

      at Object.<anonymous> (src/{file}.test.js:{count}:9)

Test Suites: 1 failed, {count} passed, 2 total
Time:        0.{count} s
"""
JAVA = """2026-09-07 08:00:{count} INFO starting on port {count}
2026-09-07 08:00:{count} INFO ready
Exception in thread "main" java.lang.IllegalStateException: cannot start
\tat com.a.Main.main(Main.java:{count})
Caused by: {error}
\tat com.a.Db.open(Db.java:{count})
\t... 3 more
"""
LOG = """{count} files read
Reading configuration
Connecting to server {count}
{error}
Cleaning up
Done in {count} s
"""
GIT = """To https://git.example/{count}/x.git
 ! [rejected]        main -> main (fetch first)
error: failed to push some refs to 'https://git.example/{count}/x.git'
hint: Updates were rejected because the remote contains work that you do not
hint: have locally.
"""
MYPY = """{file}.py:{count}: error: {error}
{file}.py:{count}: note: See the documentation
Found 1 error in 1 file (checked {count} source files)
"""
ESLINT = """
/srv/{file}.js
  {count}:5  warning  Unexpected console statement  no-console
  {count}:9  error    {error}

✖ {count} problems (1 error, 1 warning)
"""


def _pytest(error, *, test="sum", minor=11, root="a", count=12, code="f()", file="x"):
    return PYTEST.format(error=error, test=test, minor=minor, root=root, count=count, code=code, file=file)


# Long outputs of one kind of failure, and of two.
SAME_LONG = [
    (
        _pytest("ModuleNotFoundError: No module named 'yaml'"),
        _pytest("ModuleNotFoundError: No module named 'numpy'", test="other", minor=12, root="b", count=47, file="y"),
    ),
    (_pytest("assert 1 == 2"), _pytest("assert 3 == 4", minor=12, root="b", count=47)),
    (_pytest("KeyError: 'a'"), "KeyError: 'b'"),
    (UNITTEST.format(test="sum", count=3), UNITTEST.format(test="sum", count=44)),
    (
        NPM.format(count=11, call="open", error="enoent no such file, open '/a/package.json'"),
        NPM.format(count=12, call="open", error="enoent no such file, open '/b/package.json'"),
    ),
    (
        CARGO.format(count=1, code="E0425", error="cannot find value `y` in this scope"),
        CARGO.format(count=38, code="E0425", error="cannot find value `other` in this scope"),
    ),
    (
        GCC.format(file="a", count=3, error="expected ')' before ';' token"),
        GCC.format(file="b", count=99, error="expected ')' before ';' token"),
    ),
    (GO.format(test="TestDiff", count=3), GO.format(test="TestDiff", count=9)),
    (
        DOCKER.format(count=1, error='process "/bin/sh -c pip install" did not complete: exit code: 1'),
        DOCKER.format(count=4, error='process "/bin/sh -c make" did not complete: exit code: 2'),
    ),
    (JEST.format(file="a", test="adds", count=3), JEST.format(file="b", test="adds", count=5)),
    (
        JAVA.format(count=10, error="java.net.ConnectException: Connection refused"),
        JAVA.format(count=59, error="java.net.ConnectException: Connection refused"),
    ),
    (LOG.format(count=1, error="Permission denied: '/a'"), LOG.format(count=7, error="Permission denied: '/b/c'")),
    (LOG.format(count=1, error="连接失败：超时 30秒"), LOG.format(count=2, error="连接失败：超时 5秒")),
    (LOG.format(count=1, error="bash: line 3: jq: command not found"), "bash: line 9: jq: command not found"),
    (GIT.format(count=1), GIT.format(count=2)),
    (
        MYPY.format(file="a", count=1, error='Name "x" is not defined  [name-defined]'),
        MYPY.format(file="b/c", count=31, error='Name "yy" is not defined  [name-defined]'),
    ),
    (
        ESLINT.format(file="a", count=2, error="'x' is not defined  no-undef"),
        ESLINT.format(file="b", count=3, error="'yy' is not defined  no-undef"),
    ),
    (
        "rm: cannot remove 'a': Is a directory",
        "rm: cannot remove 'a': Is a directory\nrm: cannot remove 'b': Is a directory",
    ),
    ("step 1\nstep 2\nstep 3\nstep 4\nall is lost", "step 8\n-----\nstep 9\nstep 10\nstep 11\nall is lost"),
    (
        f"reading 1\n{TRACEBACK.format('/a.py', 1, 'f', 'g()', 'ValueError: bad shape')}\nbye",
        f"reading 2\nreading 3\n{TRACEBACK.format('/b.py', 9, 'h', 'i()', 'ValueError: bad shape')}\nbye",
    ),
]
DIFFERENT_LONG = [
    (_pytest("KeyError: 'a'"), _pytest("TypeError: 'a'")),
    (_pytest("assert 1 == 2"), _pytest("assert 1 == 2", test="other")),
    (UNITTEST.format(test="sum", count=3), UNITTEST.format(test="other", count=3)),
    (
        NPM.format(count=11, call="open", error="enoent no such file"),
        NPM.format(count=11, call="open", error="no lock"),
    ),
    (
        CARGO.format(count=1, code="E0425", error="cannot find value `y` in this scope"),
        CARGO.format(count=1, code="E0308", error="mismatched types"),
    ),
    (
        GCC.format(file="a", count=3, error="expected ')' before ';' token"),
        GCC.format(file="a", count=3, error="'foo' undeclared"),
    ),
    (GO.format(test="TestDiff", count=3), GO.format(test="TestOther", count=3)),
    (DOCKER.format(count=1, error="no such image"), DOCKER.format(count=1, error="denied")),
    (JEST.format(file="a", test="adds", count=3), JEST.format(file="a", test="divides", count=3)),
    (
        JAVA.format(count=10, error="java.net.ConnectException: Connection refused"),
        JAVA.format(count=10, error="java.net.UnknownHostException: db"),
    ),
    (LOG.format(count=1, error="Permission denied"), LOG.format(count=1, error="No such file")),
    (LOG.format(count=1, error="连接失败：超时"), LOG.format(count=1, error="连接失败：拒绝")),
    (LOG.format(count=1, error="jq: command not found"), LOG.format(count=1, error="npm: command not found")),
    (GIT.format(count=1), "fatal: not a git repository\nhint: run git init"),
    (
        MYPY.format(file="a", count=1, error='Name "x" is not defined  [name-defined]'),
        MYPY.format(file="a", count=1, error="Missing return statement  [return]"),
    ),
    (
        ESLINT.format(file="a", count=2, error="'x' is not defined  no-undef"),
        ESLINT.format(file="a", count=2, error="'x' is never used  no-unused-vars"),
    ),
    (
        "make: *** [Makefile:3: all] Error 2\nmake: leaving",
        "make: *** No rule to make target 'x'.  Stop.\nmake: leaving",
    ),
    ("a\nb\nc\nd\nall is lost", "a\nb\nc\nd\nall is won"),
    ("error: a is bad\nerror: b is bad\nx\ny", "error: a is bad\nerror: b is good\nx\ny"),
    (
        "panic: nil map\n\ngoroutine 1 [running]:\nmain.f()\n\t/x.go:1\nexit status 2",
        "panic: closed channel\nexit status 2",
    ),
]

SAME = [
    *SAME_LONG,
    # quoted names
    (
        "rm: cannot remove '/tmp/a1/b.txt': No such file or directory",
        "rm: cannot remove 'x': No such file or directory",
    ),
    ('exec: "docker": executable file not found in $PATH', 'exec: "podman": executable file not found in $PATH'),
    ("cannot open `a.txt' for reading", "cannot open `other name.txt' for reading"),
    ("unknown flag: `--foo`", "unknown flag: `--bar`"),
    ("ModuleNotFoundError: No module named 'numpy'", "ModuleNotFoundError: No module named 'yaml.loader'"),
    ("KeyError: 'it is'", "KeyError: 'isn't'"),
    ("could not parse “alpha” here", "could not parse “beta gamma” here"),
    ("fichier «un» introuvable", "fichier «deux trois» introuvable"),
    ("TypeError: expected str, got b'abc'", "TypeError: expected str, got b'x y'"),
    ("unknown options: 'a', 'b', 'c'", "unknown options: 'd'"),
    ("invalid value ''", "invalid value 'abc'"),
    ('invalid literal "a \\"b\\" c" given', 'invalid literal "d" given'),
    ("无法打开“报告一”", "无法打开“另一份”"),
    ("找不到「配置」文件", "找不到「设置」文件"),
    ("无法读取《周报》", "无法读取《月报》"),
    ("参数'路径'无效", "参数'名称'无效"),
    # paths
    ("cat: /etc/foo.conf: Permission denied", "cat: /var/lib/bar/x: Permission denied"),
    ("cat: /a: Permission denied", f"cat: /{'deep/' * 40_000}b: Permission denied"),
    ("src/app/main.py:12:5: error: bad type", "tests/x.py:7: error: bad type"),
    ("cannot stat ./build/out.o", "cannot stat ../lib/in.o"),
    ("cannot stat ~/notes.md", "cannot stat ~/work/plan.md"),
    ("not found: C:\\Users\\me\\a.txt", "not found: D:\\data\\b.txt"),
    ("C:\\Program Files\\App\\x.dll is missing", "D:\\x.dll is missing"),
    ("cannot reach \\\\server\\share\\a", "cannot reach \\\\nas\\b"),
    ("GET https://a.example/v1?id=3 failed: timeout", "GET http://b.example:8080/ failed: timeout"),
    ("postgres://u:p@db:5432/x refused", "postgres://db/y refused"),
    ("file main.py has errors", "file other_name.py has errors"),
    ("ls: /tmp/My Documents/a.txt: gone", "ls: /tmp/a.txt: gone"),
    ("文件/tmp/a.txt不存在", "文件/home/u/b.txt不存在"),
    ("打不开 /w/项目甲/报告.txt", "打不开 /w/项目乙/总结.txt"),
    ("无法访问 https://a.example/接口，请重试", "无法访问 https://b.example，请重试"),
    # hex, ids, temporary names
    ("bad object 3f2a9b1", "bad object c0ffee1d2"),
    ("segfault at 0x7ffee4", "segfault at 0x1"),
    ("job 123e4567-e89b-12d3-a456-426614174000 failed", "job 00000000-0000-0000-0000-000000000001 failed"),
    ("pod web-7d9f8b6c5d crashed", "pod web-5f6c7d8e9f crashed"),
    ("cannot lock tmpa8x_k2q1", "cannot lock tmpzzzzzzzz"),
    ("link aa:bb:cc:00:11:22 is down", "link 0a:1b:2c:3d:4e:5f is down"),
    ("提交 3f2a9b1 不存在", "提交 9e8d7c6 不存在"),
    # numbers, times, durations, sizes, ports
    ("exit status 1", "exit status 127"),
    ("exit code -1", "exit code 9"),
    ("[Errno 2] cannot connect to port 5432", "[Errno 111] cannot connect to port 80"),
    ("timed out after 30s", "timed out after 1m30s"),
    ("timed out after 1 second", "timed out after 250 ms"),
    ("took 1.5 seconds", "took 3 minutes"),
    ("body of 1.5MB is too large", "body of 900 KB is too large"),
    ("2026-09-07T08:00:00.123Z ERROR boom", "2026-10-01 23:59:59,001 ERROR boom"),
    ("Sep  7 08:00:00 host died", "Mon Oct 12 09:10:11 UTC 2026 host died"),
    ("[07/Sep/2026:08:00:00 +0000] refused", "[12/Oct/2025:01:02:03 +0200] refused"),
    ("connect 10.0.0.1:5432: refused", "connect 192.168.1.77:80: refused"),
    ("connect [fe80::1ff:fe23:4567:890a]: refused", "connect [2001:db8::1]: refused"),
    ("shapes [1, 2, 3] do not fit", "shapes [4, 5] do not fit"),
    ("第3行有错误", "第120行有错误"),
    ("超时：30秒", "超时：5分钟"),
    ("错误码：500，请重试", "错误码：１２，请重试"),
    ("2026年9月7日 08:00 构建失败", "2025年12月31日 23:59 构建失败"),
    # colours, spaces, letter case
    ("\x1b[31merror:\x1b[0m no such table", "error: no such table"),
    ("\x1b]8;;http://x\x07link\x1b]8;;\x07 broken", "link broken"),
    ("Error:\n\n   no   such\ttable ", "error: no such table"),
    # stack traces
    (
        TRACEBACK.format("/a/x.py", 3, "f", "g(1)", "ValueError: bad shape"),
        TRACEBACK.format("/b.py", 99, "main", "run()", "ValueError: bad shape"),
    ),
    (
        "Error: boom\n    at f (/a/x.js:1:2)\n    at g (/b.js:3:4)",
        "Error: boom\n    at Object.<anonymous> (file:///c.mjs:9:9)",
    ),
    (
        "java.io.IOException: closed\n\tat com.a.B.c(B.java:12)\n\t... 12 more",
        "java.io.IOException: closed\n\tat org.x.Y.z(Y.java:7)",
    ),
    (
        "panic: nil map\n\ngoroutine 1 [running]:\nmain.main()\n\t/a/x.go:5 +0x1d\n",
        "panic: nil map\n\ngoroutine 7 [running]:\nmain.other(0x1)\n\t/b/y.go:9 +0x2\n",
    ),
    # JSON
    ('{"error": "not found", "id": "a1"}', '{"error": "not found", "id": "b2"}'),
    ('Error: {"code":"ENOENT","path":"/a/b"}', 'Error: {"code":"ENOENT","path":"/c"}'),
]

DIFFERENT = [
    *DIFFERENT_LONG,
    ("No such file or directory", "Permission denied"),
    ("rm: cannot remove 'a': No such file or directory", "rm: cannot remove 'a': Is a directory"),
    ("cannot open 'a'", "cannot close 'a'"),
    ("ModuleNotFoundError: No module named 'a'", "ImportError: cannot import name 'a'"),
    ("java.lang.NullPointerException", "java.io.IOException"),
    ("requests.exceptions.ConnectionError", "requests.exceptions.Timeout"),
    ("connection refused", "connection reset by peer"),
    ("Can't connect, don't retry", "Can't connect, won't retry"),
    ("it's a 'x' error in users' data", "it's a 'x' warning in users' data"),
    ("don't know what's wrong", "don't see what's right"),
    ("read/write error", "read/only error"),
    ("I/O error", "I/O timeout"),
    ("text/html is not accepted", "text/plain is not accepted"),
    ("<html><title>502 Bad Gateway</title>", "<html><title>504 Gateway Timeout</title>"),
    ("exit status 1: build", "exit status 1: test"),
    ("timed out after 30s", "failed after 30s"),
    ("30 tests failed", "30 tests skipped"),
    ("std::bad_alloc", "std::out_of_range"),
    ("deadbeef is a word", "decade is a word"),
    ("facade missing", "decoded missing"),
    ("value in use", "value is free"),
    ("/srv/a: not a directory", "/srv/a: is a directory"),
    ("/srv/a.txt不存在", "/srv/a.txt已存在"),
    ("src/a.py:1: error: E", "src/a.py:1: warning: E"),
    ("C:\\a.txt not found", "C:\\a.txt in use"),
    ("https://a.example/x timed out", "https://a.example/x refused"),
    ("https://a.example/接口 超时", "https://a.example/接口 拒绝"),
    ("https://a.example/a失败", "https://a.example/a超时"),
    ("文件“a”不存在", "文件“a”被占用"),
    ("目录「a」为空", "目录「a」已满"),
    ("权限不足", "磁盘已满"),
    ("第3行语法错误", "第3行缩进错误"),
    ("超时：30秒", "中断：30秒"),
    ("连接被拒绝", "连接被重置"),
    ("2026-09-07 ERROR disk full", "2026-09-07 ERROR disk lost"),
    ('{"error": "not found"}', '{"error": "forbidden"}'),
    ('HTTP 400 {"message":"bad id","id":"1"}', 'HTTP 400 {"message":"bad name","id":"1"}'),
    ('"connection refused"', '"permission denied"'),
    ("“连接失败”", "“权限不足”"),
    ("Error: 'a", "Error: a"),
    (
        TRACEBACK.format("/a/x.py", 3, "f", "g(1)", "ValueError: bad shape"),
        TRACEBACK.format("/a/x.py", 3, "f", "g(1)", "TypeError: bad shape"),
    ),
    ("Error: boom\n    at f (/a/x.js:1:2)", "Error: bang\n    at f (/a/x.js:1:2)"),
    (
        "java.io.IOException: closed\n\tat a.B(B.java:1)\nCaused by: x.Timeout",
        "java.io.IOException: closed\n\tat a.B(B.java:1)\nCaused by: x.Reset",
    ),
    ("fatal: not a git repository", "fatal: refusing to merge unrelated histories"),
    ("unknown option --force", "unknown option --forge"),
    ("node: command not found", "npm: command not found"),
    ("fichier «a» introuvable", "fichier «a» illisible"),
    ("", "no output"),
]


def test_the_example_of_the_specification():
    text = "rm: cannot remove '/tmp/a1/b.txt': No such file or directory (exit 1)"

    assert signature("bash", text) == "bash|rm: cannot remove <q>: no such file or directory (exit <n>)"


@pytest.mark.parametrize(("one", "other"), SAME, ids=[str(place) for place in range(len(SAME))])
def test_what_differs_in_names_alone_is_one_failure(one, other):
    assert signature("bash", one) == signature("bash", other)
    assert any(map(str.isalpha, signature("", one)))


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=[str(place) for place in range(len(DIFFERENT))])
def test_what_differs_in_words_is_another_failure(one, other):
    assert signature("bash", one) != signature("bash", other)


@pytest.mark.parametrize("text", [text for pair in (*SAME, *DIFFERENT) for text in pair])
def test_the_signature_of_a_signature_is_itself(text):
    _, body = signature("bash", text).split("|", 1)

    assert signature("bash", body) == f"bash|{body}"


def test_another_tool_is_another_failure_whatever_the_names_hold():
    assert signature("bash", "exit 1") != signature("python", "exit 1")
    assert signature("Bash ", "exit 1") == signature("bash", "exit 1")
    assert signature("a|b", "c") != signature("a", "b|c")


@given(st.text(alphabet="aé字'\"`“”/\\:.0x9f-_ \n\x1b[m<>{}|", max_size=60), st.text(max_size=10))
@example("0\n'\n:", "")  # a line of which nothing is left
def test_a_signature_is_one_short_line(text, tool):
    made = signature(tool, text)

    _, body = made.split("|", 1)
    assert len(body) <= SIGNATURE_CHARACTERS
    assert body == " ".join(body.split())
    assert not any("0" <= character <= "9" for character in body)


@given(st.from_regex(r"[a-z]{1,9}", fullmatch=True), st.integers(0, 10**12), st.integers(0, 10**12))
def test_numbers_never_matter(word, one, other):
    assert signature("t", f"{word} {one} failed") == signature("t", f"{word} {other} failed")


UNIFORM = [
    "'", '"', "`", "“", "«", "/", "\\", "a/", "/a", "C:\\a ", "0", "f0", "0x", "f0 ", "1-", "1, ", "a.", ".a", "-", " ",
    "\n", "\x1b[0m", "\x1b]", "\x1b[0m ", " 'a", ' "a', "'' ", "字", "字/", "https://", "a://b ", "<", "{\"a\":",
    '{"error":"', "    at x\n", "Traceback (most recent call last):\n", "Traceback (most recent call last):\n  a\n",
    "goroutine 1 [a]:\n", "x\n\ty\n", "jan 1 ", "b'", "a:", ":", "::", "_", "tmp", "a1b2", "\\\"", "'a", "C:\\",
    " \\\\a",
]  # fmt: skip


@pytest.mark.parametrize("piece", UNIFORM)
def test_a_megabyte_of_anything_has_a_signature(piece):
    """A rule that reads on from every place would take hours."""
    made = signature("t", piece * (1_000_000 // len(piece)))

    assert len(made) <= SIGNATURE_CHARACTERS + 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (_pytest("KeyError: 'a'"), "KeyError: 'a' … "),
        (_pytest("assert 1 == 2"), "FAILED tests/test_x.py::test_sum - assert 1 == 2 … "),
        (CARGO.format(count=7, code="E0308", error="mismatched types"), "error[E0308]: mismatched types … "),
        (JEST.format(file="a", test="adds", count=3), "● sums › adds … "),
        (LOG.format(count=1, error="连接失败"), "连接失败 … 1 files read Reading"),
    ],
)
def test_a_sample_begins_with_what_tells(text, told):
    assert sample(text).startswith(told)


def test_a_sample_is_one_readable_line():
    text = "\x1b[31mError:\x1b[0m\n\n  first\tthing\x07 " + "x" * 1000

    shown = sample(text)

    assert shown.startswith("Error: first thing\ufffd xxx")
    assert len(shown) == 500
    assert shown.endswith("…")
    assert sample("short \ud83d") == "short \ufffd"


def test_what_tells_is_looked_for_once(monkeypatch):
    read = []
    telling_lines = failures.telling_lines
    monkeypatch.setattr(failures, "telling_lines", lambda text: read.append(text) or telling_lines(text))

    check_failure("bash", _pytest("KeyError: 'a'"))

    assert len(read) == 1
