"""Function words, and when a query may do without them.

Languages are never mixed: `die`, `war`, `hat` and `son` are function words in one language and content in
another. English function words are dropped unless the query is in another language. It is, if it has

- two different function words of that language that English lacks,
- more of these than of English ones, and
- one that no English text would have: van der Waals, de novo, Los Angeles and Des Moines are English, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from concord.text.word_lists import listed

ENGLISH = listed("""
    a about above across after again against all also although am among an and any anyone anything are
    aren't as at be because been before being below between both but by can can't cannot could couldn't
    did didn't do does doesn't doing don't done during each either else ever every for from further had
    hadn't has hasn't have haven't having he her here hers herself him himself his how how's however i
    i'd i'll i'm i've if in into is isn't it it's its itself just let's me more most much must my myself
    neither no nor not of off on once only onto or other ought our ours ourselves out over own per quite
    rather really shall she should shouldn't since so some somebody someone something still such than
    that that's the their theirs them themselves then there there's therefore these they they're this
    those though through thus to too toward towards under until unto up upon us very via was wasn't we
    we're were weren't what what's whatever when where where's whether which while who who's whom whose
    why will with within without won't would wouldn't yes yet you you'd you'll you're you've your yours
    yourself yourselves
""")

GERMAN = listed("""
    aber alle allem allen aller alles als also am an ander andere anderen auch auf aus bei beim bin bis
    bist da damit dann das dass dem den denn der des dich die dies diese diesem diesen dieser dieses dir
    doch dort du durch ein eine einem einen einer eines er es etwas euch euer für gegen gibt hab habe
    haben hat hatte hatten hier hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in indem ins ist
    ja jede jedem jeden jeder jedes jene jetzt kann kein keine keinen können könnte machen man manche
    mein meine mich mir mit muss nach nicht nichts noch nun nur ob oder ohne sehr sein seine seinem
    seinen seiner seit sich sie sind so solche soll sollte sondern sonst über um und uns unser unsere
    unter viel viele vom von vor wann war waren warum was weil welche welchem welchen welcher welches
    wem wen wenn wer werde werden wie wieder will wir wird wo wurde wurden würde während zu zum zur
    zwischen
""")

FRENCH = listed("""
    à afin ai aient ainsi alors après as au aucun aura aussi autre autres aux avaient avait avant avec
    avez avoir avons c'est car ce ceci cela celle celles celui ces cet cette ceux chez combien comme
    comment dans de depuis des dont donc du elle elles en encore entre es est et étaient était étant été
    être eu eux fait faut fut il ils je la le les leur leurs lors lorsque lui ma mais me même mes moi
    moins mon ne ni nos notre nous on ont ou où par parce pas pendant peut plus pour pourquoi quand que
    quel quelle quelles quels qui quoi sa sans se sera ses si son sont sous sur ta te tes toi ton tous
    tout toute toutes très tu un une vers vos votre vous y
""")

SPANISH = listed("""
    a al algo ante antes aquel aquella aunque bajo cada casi como cómo con contra cual cuál cuales
    cuáles cuando cuándo cuanto cuánto cuántos de del desde donde dónde durante e el él ella ellas ellos
    en entre era eran es esa esas ese eso esos está están esta estaba estas este esto estos fue fueron
    ha había habían han hasta hay la las le les lo los más me mi mis muy nada ni no nos nosotros o os
    otra otras otro otros para pero poco por porque que qué quien quién quienes se según ser si sí sido
    sin sobre son su sus también tan te tiene tienen todo todos tu tú tus un una unos usted y ya yo
""")

ITALIAN = listed("""
    a ad agli ai al alla alle allo anche ancora avere c'è che chi ci come con contro cosa così cui da
    dagli dai dal dalla dalle dallo degli dei del dell della delle dello di dopo dove e è ed era erano
    essere fa fino fra gli ha hai hanno ho i il in io la le lei li lo loro lui ma me mentre mi mia mie
    mio molto ne negli nei nel nella nelle nello noi non nostra nostro o ogni per perché perchè più poi
    quale quali quando quanto quella quelle quelli quello questa queste questi questo qui sarà se sei
    senza si sia sono sopra sotto sta stato su sua sugli sui sul sulla sulle suo suoi tra tu tutti tutto
    un una uno vi voi
""")

PORTUGUESE = listed("""
    a à ao aos aquela aquele aquilo as às até cada com como da das de dela dele deles depois do dos e é
    ela elas ele eles em entre era eram essa esse esta está estão estas este estes eu foi foram há isso
    isto já lhe mais mas me mesmo meu minha muito na não nas nem no nos nós nossa nosso num numa o onde
    os ou para pela pelas pelo pelos por porque qual quais quando quanto quantos que quem são se seja
    sem ser será seu seus só sobre sua suas também te tem têm tinha todo todos tu tua um uma umas uns
    você vocês
""")

DUTCH = listed("""
    aan al alle alles als bij dan dat de deze die dit doch doen door dus een en er geen had haar heb
    hebben heeft hem het hier hij hoe hoeveel hun iemand iets ik in is ja je jij jullie kan kon kunnen
    maar me meer men met mij mijn moet na naar niet niets nog nu of om omdat ons onze ook op over reeds
    te tegen toch toen tot tussen u uit uw van veel voor waar waarom wanneer want waren was wat we wel
    welke werd wie wij wil worden wordt zal ze zich zij zijn zo zonder zou
""")

OTHERS = (GERMAN, FRENCH, SPANISH, ITALIAN, PORTUGUESE, DUTCH)

# In other scripts no word is mistaken for an English one, so these are function words in any query.
OTHER_SCRIPTS = (
    listed("""
        а без более бы был была были было быть в вам вас весь во вот все всего всех вы где да даже для до его
        ее её если есть еще ещё же за здесь и из или им их к как какая какие какой какую когда кто ли либо мне
        может можно мы на над надо наш не него нет ни них но ну о об однако он она они оно от очень по под при
        с со сам свой себя сколько так такой там тебя тем то того тоже той только том ты у уже хотя чего чем
        что чтобы эта эти это этого этой этом этот я
        або але без бо був була були було бути в вам вас ви він від вона вони все да де для до є з за зі і із
        його й їх як яка який які яку коли кого кому мене ми мій на над не ні о один про та так там те ти то
        тому у це цей ця ці чи чому що щоб я
    """)
    | listed("""
        αν από αυτά αυτή αυτό αυτός για δεν είναι ένα ένας εδώ εκεί έχει η ήταν θα και κάθε με μετά μη μην
        μια μία μου να ο οι όπου όταν ότι πολύ πόσο ποια ποιο ποιος πού που πριν προς πως πώς σας σε στα στη
        στην στις στο στον στους τα τη την της τι τις το τον του τους των χωρίς ως
    """)
    | listed("""
        अगर अपना अपनी अपने आप इन इस इसका इसके इसे उन उनका उनके उस उसका उसके एक और कब कर करता करते करना करने का
        काफी कि किस किसी की कुछ के कैसे को कोई कौन क्या क्यों कहाँ कहां गया गई गए जब जहाँ जा जाता जाती जैसे जो तक
        तब तो था थी थे दिया द्वारा न नहीं ने पर बहुत भी मुझे मेरा मेरी मैं में यदि यह यहाँ या ये रहा रही रहे लिए
        लेकिन वह वहाँ वाला वाली वाले वे साथ से हम हमारा हमारे ही हुआ हुई हुए है हैं हो होता होती होते होना
    """)
    | listed("""
        أن إن أو أين أي إذا إلى الذي التي ال أنا أنت إنها بعد بين ثم حتى حول دون ذلك على عن عند في قبل قد كان
        كانت كل كم كما كيف لا لقد لكن لم لماذا لن له لها ما متى مع من منذ نحن هذا هذه هل هم هناك هو هي و يا
    """)
    | listed("""
        אבל או אולי אז איך אין אם אני אנחנו את אתה אתם בין גם האם הוא היא היה היו הם הן זה זו זאת יש כאן כדי
        כי כל כמה כמו לא לפני לי לך מאוד מה מי מתי נגד על עם עד ער רק של שם
    """)
)

# Function words of those languages that also occur in English, as words or in names: they prove nothing.
_ALSO_ENGLISH = listed("""
    a ai al alle also am an ante as bin come con dan das dei del den des die do doch dos dove due e en
    er es est fin for hat hem her hers hun i in ins is it kan la las le les li lo los ma main man me men
    mes met mi mia mine more na nada no non nos nu nun o ob of om on once op or os ou out over para pas
    per plus pour sans se sei ser si sin so soi son sons sous sur ta tan te ten ton tot tout tu u un us
    van vers via voi von want war waren was we wel wen were wie will wo y ya yo ze zo
""")

# Words of English that are words of further languages: Polish, Danish, Romanian, Finnish and others.
_WIDESPREAD = listed("are at by has he my to under")

_MIN_FOREIGN = 2
_OPERATORS = ("AND", "OR", "NOT")
_AROUND = "\"'“”„«»()[]{}<>.,;:!?¿¡…-_*。，、！？；："


def is_stop_word(word: str) -> bool:
    """Whether this is a function word of English."""
    return _plain(word) in ENGLISH


def significant(words: Sequence[str]) -> list[str]:
    """Return the words without the function words of their language; all when nothing else is left."""
    plain = [_plain(word) for word in words]
    stop_words = _language(plain)
    shouted = not any(character.islower() for word in words for character in word)
    return [
        word
        for word, lower in zip(words, plain, strict=True)
        if lower not in stop_words and lower not in OTHER_SCRIPTS or not shouted and _is_acronym(word)
    ] or list(words)


def _language(words: Iterable[str]) -> frozenset[str]:
    """Return the stop words of the language that these words show."""
    distinct = set(words)
    foreign = distinct - ENGLISH
    shown = [len(foreign & language) for language in OTHERS]
    most = max(shown)
    language = OTHERS[shown.index(most)]
    if most < _MIN_FOREIGN or most <= len((distinct & ENGLISH) - language):
        return ENGLISH
    return language if (foreign & language) - _ALSO_ENGLISH else ENGLISH


def shows_english(words: Iterable[str]) -> bool:
    """Whether words are English: they have more function words of English alone than foreign ones."""
    distinct = {_plain(word) for word in words}
    english, foreign = _of_one_language()
    return len(distinct & english) > len(distinct & foreign)


@cache
def _of_one_language() -> tuple[frozenset[str], frozenset[str]]:
    """Return the function words that only English has, and those that only other languages have."""
    others = frozenset().union(*OTHERS)
    return ENGLISH - others - _ALSO_ENGLISH - _WIDESPREAD, others - ENGLISH


def _is_acronym(word: str) -> bool:
    """Whether capitals say that it is a name: IT, US and WHO among words in lower case."""
    return len(word) > 1 and word.isupper() and word not in _OPERATORS


def _plain(word: str) -> str:
    """Return a word in lower case, with a typewriter's apostrophe and no punctuation around it."""
    return word.lower().replace("’", "'").strip(_AROUND)
