"""Word lists that tell query types apart, and statements. Data only: see classify, entities and duplicates.

Lists are lower case. They hold English first, and the question words, articles and comparison words of the
languages that users most often mix with it, because German writes every noun with a capital and Chinese puts
its question word in the middle.
"""

from __future__ import annotations

from concord.text.word_lists import listed

QUESTION_WORDS = listed(
    """
    how why what when where who which whom whose how-to howto
    wie warum wieso weshalb wann wo wer wen wem wessen welche welcher welches welchen welchem woher wohin
    wofür womit worin woraus wovon wodurch woran worauf wozu wobei wonach
    pourquoi quand où qui que quoi quel quelle quels quelles combien lequel laquelle qu est-ce
    cómo qué cuándo dónde quién quiénes cuál cuáles cuánto cuántos cuánta cuántas
    como quando onde quem qual quais quanto quantos
    perché cosa quale quali
    waarom wat wanneer waar welke hoeveel
    как почему зачем что когда где кто какой какая какое какие сколько чем
    어떻게 왜 무엇 언제 어디 누가 누구 어느 어떤 얼마나
    كيف لماذا متى أين ماذا
    कैसे क्या क्यों कब कहाँ कौन
    """
)

# Question words that are also English words: they count only beside a word of their own language.
SHARED_QUESTION_WORDS: dict[str, frozenset[str]] = {
    "comment": listed("le la les un une des du de ce ça je on tu nous vous mon ma mes est sont se faire"),
    "was": listed("ist sind der die das ein eine man bedeutet passiert kostet macht heißt kann ich wird"),
    "hoe": listed("de het een ik je werkt kan moet wordt maak"),
    "come": listed("il la lo si gli un una funziona posso è sono"),
}

# What may stand before a question word without hiding it: "in which year", "so how does it work".
QUESTION_LEADS = listed(
    "in on at by for from to with of about under since until during after through into and but so ok hi hello"
)

# A yes/no question has no question word; these open one before a subject, or when it ends in a question mark.
AUXILIARIES = listed(
    "is are was were do does did can could should would will has had may might must isn't aren't don't "
    "doesn't didn't can't couldn't shouldn't won't hasn't haven't"
)

SUBJECTS = listed(
    "i you he she it we they there the a an this that these those any anyone someone my your our its"
)

# First words of polite phrases: only for queries that begin so is the pattern of all phrases compiled.
POLITE_OPENERS = listed(
    """
    can could do does explain give hello hey hi i i'd i'm please show tell we we'd will would
    bitte erklär erkläre erklären hallo ich kannst können könnten könntest nenne nennen sag sage sagen verrat
    verrate verraten weiss weisst weiß weißt wissen würden würdest zeig zeige zeigen
    bonjour dis dis-moi dis-nous dites dites-moi dites-nous est-ce explique-moi explique-nous
    expliquez-moi expliquez-nous indique-moi indique-nous indiquez-moi indiquez-nous j'aimerais je
    montre-moi montre-nous montrez-moi montrez-nous peux-tu pourrais-tu pourriez-vous pouvez-vous s'il
    sais-tu salut savez-vous tu vous
    alguien dígame dime explícame explíqueme hola indícame me muéstrame muéstreme necesito podría podrían
    podrías por puede pueden puedes querría quiero quisiera sabe sabes
    """
)

# With what thanks at the end of a query end, for the same reason.
LAST_OF_THANKS = listed(
    """
    advance cheers lot much please thanks thx you
    bitte dank danke dankeschön dir ihnen schön sehr voraus
    beaucoup bien d'avance merci plait plaît
    favor gracias
    """
)

CONCEPT_WORDS = listed(
    """
    explain explains explained explaining explanation describe describes described describing
    understand understands understanding concept concepts conceptual
    difference differences compare compares compared comparing comparison comparisons versus vs
    erkläre erklären erklärung unterschied unterschiede vergleich vergleiche vergleichen beschreibe
    expliquer explique différence différences comparer comparaison décrire
    explicar explica diferencia diferencias comparar comparación diferença diferenças comparação
    spiegare differenza differenze confronto
    uitleg verschil vergelijk
    объясни объяснить разница отличие сравнение сравнить
    """
)

# Quantities that people look up. Words that are as often something else (rate limit, volume mount, number
# theory, page size) are left out: a wrong "factual" costs more than a missed one.
METRIC_WORDS = listed(
    """
    price prices cost costs revenue revenues profit profits budget budgets salary salaries wage wages income
    earnings fee fees expense expenses turnover gdp population percentage percent latency throughput headcount
    version versions release releases
    preis preise kosten umsatz gewinn gehalt bevölkerung prix coût coûts salaire precio precios coste costo
    ingresos salario población preço preços custo receita prezzo цена стоимость выручка население зарплата
    """
)

# Scripts without spaces: looked for anywhere in the text. Each is long enough not
# to be part of a common word (何 alone is in 幾何 "geometry", 哪吒 is a god).
UNSPACED_QUESTIONS = (
    "什么|什麼|甚麼|怎么|怎麼|怎样|怎樣|如何|为什么|為什麼|为何|為何|哪(?!吒)|谁|誰|"
    "多[少久快远遠大高长長重]|何[时時处處地]|几个|幾個|なぜ|どうやって|どのよう|どう|どれ|どの|いつ|どこ|だれ|"
    "何が|何を|何の|何で|何人|何年|とは|ですか|ますか|"
    "어떻게|무엇|언제|어디|누가|얼마나|ทำไม|อย่างไร|อะไร|เมื่อไร|ที่ไหน|ใคร"
)
UNSPACED_CONCEPTS = "解释|解釋|区别|區別|差异|差異|比较|比較|说明|説明|違い|차이|설명|비교"
UNSPACED_METRICS = (
    "价格|價格|成本|收入|营收|營收|利润|利潤|预算|預算|人口|版本|発売|売上|価格|가격|매출|인구|버전"
)

# Capitalised at the head of a sentence, but never part of a name.
FUNCTION_WORDS = listed(
    """
    a an the this that these those there here it its i i'm i've my me we our you your he his she her they
    their them and or but nor not no yes if then else than as at by for from in into of off on onto out over
    to under up with without about after before between during until since while because so such very more
    most less least few many much some any each every all both either neither other another same own only just
    also too again once ever is are was were be been being am do does did done has have had having can could
    should would will shall may might must let please
    der die das den dem des ein eine einen einem einer eines und oder aber nicht kein keine ist sind war mit
    für von vom zu zum zur im am auf aus bei nach über unter ich du er sie es wir ihr mein meine
    le la les un une des du de et ou mais ne pas est sont avec pour dans sur par ce cette ces mon ma mes je tu
    il elle nous vous ils elles l d j m t s n c qu
    el los las una unos unas y o pero no es son con para por en del al su sus mi mis
    il lo gli uno ed è di da
    os um uma e não são com do da dos das
    het een en niet van voor op met
    и или не в на с по для из от до это
    """
)

# Words that open a request rather than a name: "Install Docker" is about Docker, not about Install Docker.
OPENERS = listed(
    """
    add allow build change check clone configure connect convert create debug delete deploy design disable
    download enable export find fix get give implement import improve install learn list make manage migrate
    monitor move open optimize query read remove rename replace reset restart restore return run search send
    set setup show start stop switch tell test tune uninstall update upgrade upload use using write latest
    """
)

# Words that are seldom part of a name, and when they are. Articles and prepositions of languages that write
# nouns small: what has a capital after them is a name (Los Angeles, La Paz), not in German (Die Anmeldung).
NAME_PARTICLES = listed("los las el la le les il de du di del da van")
# They praise what follows, unless the whole query is capitalised as a name is (New Zealand, Best Buy) …
NAME_ADJECTIVES = listed("new best top good")
# … or it is one of these.
NAMED_AFTER: dict[str, frozenset[str]] = {
    "new": listed(
        "york zealand orleans jersey mexico hampshire delhi england guinea caledonia haven brunswick south"
    ),
    "best": listed("buy western"),
    "top": listed("gun gear"),
}
FIRST_NAMES = listed("will may")  # that ask or allow, too

# Spelled with capitals inside by their owners. They are names like Python or Docker, not identifiers.
BRANDS = listed(
    """
    javascript typescript coffeescript github gitlab bitbucket gitops devops devsecops mlops youtube linkedin
    paypal powerpoint powershell wordpress whatsapp facebook tiktok airbnb macbook imac iphone ipad ipod
    icloud itunes airpods airtag ebay jquery tensorflow pytorch numpy scipy openai chatgpt deepmind fastapi
    graphql postgresql mysql sqlite mongodb dynamodb mariadb couchdb influxdb clickhouse elasticsearch
    opensearch bigquery redshift cloudformation cloudfront openshift openstack openssl openssh websocket
    websockets webassembly webgl opengl intellij pycharm phpstorm rubymine autocad photoshop bluetooth wifi
    playstation xbox mastercard fedex nvidia latex bibtex phd mckinsey mcdonald macos langchain llamaindex
    huggingface node.js vue.js next.js nuxt.js react.js express.js angular.js three.js d3.js nest.js socket.io
    asp.net vb.net ado.net
    """
)

# Dotted, yet no identifiers.
ABBREVIATIONS = listed("e.g i.e a.m p.m a.k.a n.b p.s w.r.t i.i.d c.f q.e.d ph.d m.sc b.sc")

# Before a number they make it a name ("error 404", "RFC 2616", "PEP 8"), however short the number is.
DESIGNATORS = listed(
    """
    error errno code port issue ticket bug pr rfc pep iso iec ieee din http status exit form article
    regulation directive flight model serial isbn apollo boeing airbus
    """
)

# Capitalised before a number without making it a name: "Chapter 3", "Top 10", "January 15", "Version 2".
COUNTED = listed(
    """
    chapter section figure fig table page step part level day week month year lesson unit volume appendix
    phase episode season grade class group type version release number no question item row line column slide
    top january february march april may june july august september october november december jan feb mar apr
    jun jul aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday
    """
)

# After a number they make it a quantity.
UNITS = listed(
    """
    % percent ‰ kg kilograms grams mg µg lb lbs pounds oz tons tonnes km kilometers kilometres meters metres
    cm mm nm µm miles mi ft feet inch inches yards acres hectares l ml litres liters gallons kb mb gb tb pb
    kib mib gib tib bits bytes bit byte hz khz mhz ghz ms µs ns sec secs second seconds min mins minute
    minutes hour hours hr hrs day days week weeks month months year years decades centuries kw mw gw kwh wh
    watt watts volt volts mah amp amps rpm fps px dpi kbps mbps gbps mph kmh °c °f °k celsius fahrenheit
    kelvin degrees usd eur gbp chf dollars dollar euros euro cents yen yuan rupees million billion trillion
    thousand hundred dozen times people persons users employees items rows columns requests calories kcal kj
    bar psi db kg/m³ km/h m/s
    jahre jahren tage tagen stunden minuten sekunden prozent meter kilometer
    ans jours heures minutes años días horas
    лет дней часов минут рублей км кг
    """
)

# Quantities only when they touch the number: "5m" is a length, "5 m" is too rare to guess.
TOUCHING_UNITS = listed("s m h g w v am pm")

# A text with one of these words more or less says something else. The t is that of don't, the n of n'est.
NEGATIONS = listed(
    """
    not no never none nothing nobody nowhere neither nor without cannot t hardly unless except only
    nicht kein keine keinen keinem keiner keines nie niemals ohne weder nichts niemand außer nur
    ne n pas jamais sans aucun aucune ni rien sauf seulement
    nunca sin nada jamás ningún ninguna ninguno solo non mai senza né nessuno nessuna solo
    não nem sem nenhum nenhuma niet geen nooit zonder
    не нет нельзя никогда без ни नहीं मत बिना لا لم لن ليس بدون غير
    """
)
UNSPACED_NEGATIONS = frozenset("不没沒未无無非否莫勿禁ぬ않못없안") | {"ない", "ませ", "なし"}

# A text with one of these words in the place of another says something else: may and must, before and after.
OPPOSED = listed(
    """
    may might must can could shall should will would and or all any some always sometimes yes true false
    before after until since above below over under more less fewer most least minimum maximum min max
    on off in out up down with first last same different enable enabled disable disabled
    allow allowed allows deny denied denies forbid forbidden permitted prohibited include included exclude
    excluded accept accepted accepts reject rejected rejects required optional increase increases increased
    decrease decreases decreased open closed public private start stop left right
    darf muss soll kann sollte und oder vor nach mehr weniger peut doit et ou avant après plus moins
    puede debe antes después más menos
    """
)
