"""Queries and the kind each is taken for, trap by trap, and the names found in them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple

from concord.answering.request_checks import search_options
from concord.answering.understand import interpret
from concord.config import load_settings
from concord.ranking.classify import classify
from concord.ranking.entities import MAX_ENTITIES, entities, mention_lifts, mentioned
from concord.ranking.lift import lifted
from concord.ranking.plan import WEIGHTS, multipliers, polled
from concord.ranking.word_shapes import shape
from concord.ranking.words import READ_CHARS
from concord.types import QueryKind, Ranked, Request

KINDS: dict[QueryKind, str] = {
    "exact_quote": """
        "not a conventional company"
        "error: connection refused" nginx
        find "exact phrase" here
        “curly quotes work too”
        „deutsche Anführungszeichen“ suchen
        « liberté, égalité, fraternité » devise
        «без пробелов»
        「吾輩は猫である」の作者
        『哈利波特』作者
        ”swedish quotes” here
        "386"
        "Oak Ridge" history
        how does "graceful shutdown" work
        "one" and "two"
        closed "pair" then a stray "
        ("in parentheses")
        print("hello")
        title="auth"
        "don't panic"
        what is “质” in Chinese
        "a"
    """,
    "entity": """
        Oak Ridge
        Oak Ridge laboratories
        history of Oak Ridge National Laboratory
        the Manhattan Project
        Machine Learning
        Ada Lovelace biography
        who was Ada Lovelace
        What did Newcastle University win
        Newton's Laws
        Jean-Paul Sartre
        J. K. Rowling
        J.R.R. Tolkien books
        John F. Kennedy speech
        Dr. Strangelove ending
        St. Louis weather
        U.S. Congress
        IBM Watson
        AWS Lambda
        REST API Design
        VS Code settings
        GitHub Actions cache
        Don Quixote
        New York
        New York City
        New York population
        New Zealand
        flights to New York
        New Orleans jazz festival
        Los Angeles
        Los Angeles weather
        flights to Los Angeles
        Las Vegas hotels
        El Niño
        La Paz
        Le Monde archive
        Da Vinci
        Van Gogh museum
        Will Smith
        Is Will Smith married
        movies with Will Smith
        May Day
        Best Buy
        Best Buy return policy
        Best Western
        Top Gun
        Good Morning America
        O'Brien Smith
        Олег Иванов
        Ørsted Łódź
        Wer ist Angela Merkel
        Wann wurde Albert Einstein geboren
        在Sky Digital推出时
        386
        42
        2024
        3.14
        1,024
        386DX33
        intel 386
        386处理器
        error 404
        how to fix error 404
        port 8080
        HTTP 500
        RFC 2616
        PEP 8
        #1234
        issue #7
        Windows 11 upgrade
        upgrade to Windows 11
        Boeing 747
        CVE-2024-1234
        what is CVE-2024-1234
        ISO-8601
        JIRA-1234
        0x80070057
        e11d9004af267638
        550e8400-e29b-41d4-a716-446655440000
        192.168.0.1
        127.0.0.1:8080
        snake_case
        MAX_RETRIES
        __init__
        _private_field
        how does get_user_name work
        getUserName
        how does getUserName work
        where is UserService defined
        parseHTMLPage
        userID
        HTTPServer timeout
        a.b.c
        os.path.join
        numpy.array shape
        std::vector
        self->next
        print()
        list.append() cost
        @dataclass
        $PATH
        --no-embed
        <div>
        config.yaml
        .gitignore
        .env.local
        README.md badge
        how to read config.yaml
        src/concord/types.py
        docs/auth.md
        /etc/hosts
        ~/notes
        ./run.sh
        C:\\Windows\\System32
        example.com
        https://example.com/a?b=c
        someone@example.com
        v2
        v2.1
        what changed in v2.1
        1.2.3
        3.12.0rc1
        2.0-beta
        python 3.11.10
        node 18.2
        foo-bar_v2.1
        mp3 player
        python3 venv
        COVID-19 symptoms
        GPT-4 context window
        k8s pod eviction
        s3 bucket policy
        CO2 emissions
        vitamin B12 deficiency
        x86-64 calling convention
    """,
    "conceptual": """
        how does auth work
        how does authentication work
        How does trust calibration work
        HOW TO RESET PASSWORD
        how-to guides
        why is the sky blue
        what's new
        what’s new
        What is Python
        what is .NET
        what is C++ used for
        when does the course begin
        where do I join
        Where are the logs
        who maintains this
        WHO IS IN CHARGE
        which database is best
        whose responsibility is it
        to what extent does it scale
        in which year was it founded
        so how does it work
        After the massacre what poet wrote it?
        In 2005, what did he think?
        Is there a way to cancel
        is it possible to roll back
        does the cache expire
        Can caching help?
        Will Docker help?
        ¿Cómo funciona el inicio de sesión?
        qué es kubernetes
        Wie funktioniert die Anmeldung
        Warum startet der Server nicht
        Was ist die Hauptstadt
        Nach welcher Figur wurde es benannt?
        Pourquoi le serveur ne démarre pas
        Comment fonctionne la connexion
        Qu'est-ce que Kubernetes
        Como funciona a autenticação
        Hoe werkt de cache
        Как работает аутентификация
        Почему сервер не запускается
        认证是如何工作的
        什么是机器学习
        最大的行星是？
        認証はどのように動作しますか
        인증은 어떻게 작동합니까
        어떻게 인증하나요
        كيف تعمل المصادقة
        प्रमाणीकरण कैसे काम करता है?
        explain quicksort
        Explain Docker
        please describe the deployment
        understand closures
        understanding closures
        concept of ownership
        difference between tcp and udp
        differences between threads and processes
        compare postgres and mysql
        Compare Rust and Go
        comparison of sorting algorithms
        React vs Vue
        docker versus podman
        tabs vs. spaces
        Unterschied zwischen Docker und Podman
        différence entre TCP et UDP
        TCP和UDP的区别
        how does COVID-19 spread
        how do 1000 threads affect memory
        how do I install python3
        what happened in 1984
        how many of the 300 employees left
        how much does it cost
        "how does it work
        When Harry Met Sally
    """,
    "factual": """
        revenue 2024
        Revenue 2024
        revenue
        price of bitcoin
        cost per request
        budget 2023 marketing
        salary bands
        price 300
        population of France
        world cup 1998
        the 1990s
        music of the 90s
        mid-2020s fashion
        battle of 1066
        meeting notes 2024-01-15
        2024-01-15
        15.01.2024
        01/15/2024
        January 15, 2024
        Jan 2024
        Q3 2024
        Q3 results
        FY24 plan
        2020-2024 roadmap
        meeting at 10:30
        latest version
        version 2
        version 2.1
        release notes
        release date
        5 GB memory
        5GB memory
        10kg dumbbell
        100ms budget
        20 % discount
        20% discount
        $100 gift
        €50 voucher
        565 °C
        37°C fever
        3.5 inch floppy
        growth of 3.5 percent
        marathon 42 km
        5 years experience
        25 minutes timer
        2024年收入
        苹果公司的价格
        Umsatz 2023
        prix du billet
        Windows 11 price
        revenue 2024?
    """,
    "exploratory": """
        machine learning
        Machine learning
        authentication
        Authentication
        kubernetes networking
        Kubernetes networking
        Python
        Python tutorial
        C++
        C++ templates
        C#
        C# generics
        F#
        .NET
        .NET garbage collection
        Node.js
        Node.js streams
        JavaScript promises
        PostgreSQL tuning
        iPhone
        macOS shortcuts
        mRNA vaccines
        miRNAs in plants
        don't panic
        Don't Panic
        'single quotes'
        ‘curly single quotes’
        rock 'n' roll
        it's complicated
        "unbalanced quote
        unbalanced quote"
        in the "middle of
        5" disk and 3" disk
        ""
        " "
        "!!!"
        “unclosed “twice
        OAK RIDGE
        ALL CAPS QUERY HERE
        NASA
        REST API
        NASA budgeting
        WHO guidelines
        The Beatles
        The server
        Install Docker
        Install the Docker daemon
        Oak Ridge National Laboratory
        The Art of Computer Programming
        Getting Started With Rust
        Introduction To Machine Learning
        Introduction to python
        Rust, Python, Go
        I like Rust. Python too
        Die Anmeldung
        Die API
        La API
        El servidor
        NEW YORK
        Der Server startet
        Das Passwort zurücksetzen
        La connexion
        inicio de sesión
        запуск сервера
        機械学習
        机器学习
        幾何学
        哪吒
        한국어 검색
        whatsapp groups
        however
        whoever wins
        whoami
        showcase
        misunderstanding
        csv export
        vscode
        can openers
        Will Docker help
        New features in Python
        New Python libraries
        New in Python
        Best practices for Python
        Best Python libraries
        Top Python libraries
        Good Python books
        Latest Docker
        comment syntax in yaml
        state-of-the-art
        foo-bar
        client/server
        TCP/IP
        and/or
        24/7 support
        e.g. caching
        i.e. nothing
        Ph.D. thesis
        top 10 movies
        Chapter 3 summary
        3 steps
        1,000 genomes project
        3rd party webhook
        3d printing
        5G network
        24-hour clock
        APIs
        McKinley
        file(s)
        rate limiting
        number theory
        a
        I
        ?
        !!!
        -
    """,
}
ROWS = [
    (query.strip(), kind)
    for kind, block in KINDS.items()
    for query in block.strip("\n").splitlines()
    if query.strip()
]


@pytest.mark.promise("003.classify.types", "000.classify.patterns", "B.classify.table")
@pytest.mark.parametrize(("query", "kind"), ROWS)
def test_a_query_is_taken_for_its_kind(query: str, kind: str):
    assert classify(query) == kind


@pytest.mark.promise("B.classify.table")
def test_the_table_of_kinds_is_long_and_says_each_query_once():
    assert len(ROWS) >= 150
    assert len({query for query, _ in ROWS}) == len(ROWS)


@pytest.mark.parametrize("query", ["", " ", "\n\t", "\x00", "\ufeff", "\u200b", "…"])
def test_a_query_of_nothing_is_exploratory_and_holds_no_name(query: str):
    assert classify(query) == "exploratory"
    assert entities(query) == ()


@pytest.mark.parametrize(
    "query", ["how does it\nwork", "  how does it work  ", "(how does it work)", "- how does it work"]
)
def test_white_space_and_signs_around_a_query_change_nothing(query: str):
    assert classify(query) == "conceptual"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("Oak Ridge laboratories", ("Oak Ridge",)),
        ("who did John Elway play for in Super Bowl XXXIII", ("John Elway", "Super Bowl XXXIII")),
        ("What sea bordered Genghis Khan's empire", ("Genghis Khan",)),
        ('"Oak Ridge" history', ("Oak Ridge",)),
        ("fix CVE-2024-1234 in config.yaml, twice: CVE-2024-1234", ("CVE-2024-1234", "config.yaml")),
        ("J.K. Rowling", ("J.K. Rowling",)),
        ("在Sky Digital推出时", ("Sky Digital",)),
        ("machine learning", ()),
        ("New York City", ("New York City",)),
        ("cheap flights to New York City in May", ("New York City",)),
        ("trains from New York, New Jersey and Los Angeles", ("New York", "New Jersey", "Los Angeles")),
        ("movies of Will Smith at Best Buy", ("Will Smith", "Best Buy")),
        ("who is Will Smith", ("Will Smith",)),
        ("New Docker Compose version", ("Docker Compose",)),
        ("Best Docker Compose tutorial", ("Docker Compose",)),
        ("La La Land", ("La La Land",)),
        ("What Will Change", ()),
        ("New features in New York", ("New York",)),
        ("Will Smith?", ()),
        ("386", ("386",)),
        ("is `get_user_name()` public", ("get_user_name()",)),
    ],
)
@pytest.mark.promise("003.classify.entities")
def test_names_are_taken_out_of_a_query(query: str, names: tuple[str, ...]):
    assert entities(query) == names


def test_a_pasted_page_yields_a_bounded_number_of_names():
    assert len(entities(" and ".join(f"Oak Ridge{chr(97 + n % 26)}{n}" for n in range(400)))) == MAX_ENTITIES


def test_a_name_is_mentioned_only_as_whole_words_and_in_any_case():
    text = "The OAK\nRIDGE site used a 386, not a 386DX."
    assert mentioned(["Oak Ridge", "386", "86", "Ridge site use"], text) == ("Oak Ridge", "386")
    assert mentioned(["386"], "only 3864 and 1386") == ()
    assert mentioned(["MP3", "X11"], "MP3ファイルとX11用のフォント") == ("MP3", "X11")
    assert mentioned(["ファイル"], "MP3ファイル名") == ()


@pytest.mark.promise("000.entity.boost")
def test_a_mention_lifts_a_chunk_past_near_ties_only():
    ranked = [Ranked(1, 1.0, ()), Ranked(2, 0.55, ()), Ranked(3, 0.5, ()), Ranked(4, 0.0, ())]
    texts = {1: "Pine", 2: "Oak", 3: "Oak Ridge", 4: "Ridge"}
    assert [one.chunk_id for one in lifted(ranked, mention_lifts(["Oak Ridge"], texts))] == [1, 3, 2, 4]
    assert lifted(ranked, mention_lifts(["Elm Street"], texts)) == ranked
    assert lifted([], mention_lifts(["Oak Ridge"], texts)) == []


def test_a_mention_lifts_a_chunk_whatever_the_scale_of_scores():
    equal = [Ranked(1, -3.0, ()), Ranked(2, -3.0, ())]
    lifts = mention_lifts(["386"], {1: "a 286", 2: "a 386"})
    assert [one.chunk_id for one in lifted(equal, lifts)] == [2, 1]


@settings(max_examples=200)
@given(st.text(max_size=200))
def test_any_text_is_of_some_type_and_no_entity_in_it_is_empty(text: str):
    assert classify(text) in WEIGHTS
    assert all(name for name in entities(text))


@settings(max_examples=100)
@given(st.text(alphabet="aA1_.-\"'“«/ ?(:@#中", max_size=40))
def test_a_query_with_a_name_is_of_kind_entity_unless_it_is_quoted(text: str):
    assert (classify(text) in {"entity", "exact_quote"}) or entities(text) == ()


UNITS = [
    "a",
    "A",
    "1",
    "_",
    ".",
    '"',
    "“",
    "„",
    "«",
    "a.",
    "a-",
    "a_",
    "Aa ",
    "/a",
    "A-1",
    "@a",
    "a::",
    "什么",
    "AB-11",
]


@pytest.mark.parametrize("unit", UNITS)
def test_a_hundred_kilobytes_are_judged_by_their_beginning(unit: str):
    text = unit * (100_000 // len(unit))
    assert classify(text) == classify(text[:READ_CHARS])
    assert entities(text) == entities(text[:READ_CHARS])


@pytest.mark.parametrize("unit", UNITS)
def test_no_pattern_explodes_on_one_word_of_a_hundred_kilobytes(unit: str):
    word = unit.strip() * (100_000 // len(unit))
    assert shape(word) in {None, "likely", "sure"}  # a quadratic pattern would keep us here for minutes


@pytest.mark.promise("003.weights.matrix")
def test_the_weight_matrix_is_the_seeds():
    assert {kind: astuple(weights) for kind, weights in WEIGHTS.items()} == {
        "exact_quote": (0.1, 0.9),
        "entity": (0.4, 0.6),
        "conceptual": (0.8, 0.2),
        "factual": (0.5, 0.5),
        "exploratory": (0.7, 0.3),
    }


@pytest.mark.parametrize("kind", sorted(WEIGHTS))
def test_the_multipliers_of_every_type_of_query_average_one(kind: QueryKind):
    assert sum(astuple(multipliers(kind))) / 2 == pytest.approx(1)


@pytest.mark.promise("000.candidates.forty", "001.vec.candidates")
def test_each_strategy_proposes_forty_or_three_times_the_limit():
    def candidates(limit: int) -> int:
        request, settings = Request("login", top=limit), load_settings()
        values = search_options(request, settings)
        return interpret(request, values, settings, [], lambda _: False, lambda _: False)[0].candidates

    assert [candidates(limit) for limit in (1, 10, 13, 14, 50)] == [40, 40, 40, 42, 150]


def test_a_mode_asks_the_strategies_of_its_families():
    assert polled("auto") == polled("hybrid") == ("lexical", "semantic")
    assert polled("semantic") == ("semantic",)
    assert polled("fts5") == ("lexical",)
