"""Which words of a query only ask politely? "Can you tell me", "ich möchte wissen", "dites-moi".

They say nothing of what is sought, but would count as words that a passage lacks. A closed list of whole
frames at the beginning of a query: `show me` is one, the `show` of `git show` and `SHOW TABLES` is none.
"""

from __future__ import annotations

import re

from concord.ranking.lexicon import FRAME_OPENERS
from concord.text.pattern import pattern

_LEAST = 2  # words that must be left: who types "show me" and a name may look for just that

_ENGLISH = r"""
    (?:(?:can|could|would|will)\s(?:you|someone|anyone|anybody|somebody)\s(?:please\s|kindly\s)?)?
        (?:tell|show|give)\sme(?:\splease)?(?:\sabout|\sif|\swhether)?
  | (?:i\swould|i'd|we\swould|we'd)\slike\sto\s(?:know|find\sout|learn)(?:\sabout|\sif|\swhether)?
  | (?:i|we)\s(?:want|wanted|need)\sto\sknow(?:\sabout|\sif|\swhether)?
  | i(?:\sam|'m|\swas)\swondering(?:\sabout|\sif|\swhether)?
  | do\syou\s(?:happen\sto\s)?know(?:\sabout|\sif|\swhether)?
  | does\s(?:anyone|anybody|someone|somebody)\sknow(?:\sabout|\sif|\swhether)?
"""
_GERMAN = r"""
    (?:kannst|könntest|würdest)\sdu\s(?:mir|uns)\s(?:bitte\s)?(?:sagen|zeigen|verraten|nennen)(?:,?\sob)?
  | (?:können|könnten|würden)\ssie\s(?:mir|uns)\s(?:bitte\s)?(?:sagen|zeigen|verraten|nennen)(?:,?\sob)?
  | (?:sage?|zeige?|nenne|verrate?)\s(?:mir|uns)(?:\sbitte)?(?:,?\sob)?
  | (?:sagen|zeigen|nennen|verraten)\ssie\s(?:mir|uns)(?:\sbitte)?(?:,?\sob)?
  | ich\s(?:möchte|würde|wollte|will)\s(?:gerne?\s)?(?:wissen|erfahren)(?:,?\sob)?
  | (?:wei(?:ß|ss)t\sdu|wissen\ssie|wei(?:ß|ss)\s(?:jemand|einer))(?:,?\sob)?
"""
_FRENCH = r"""
    (?:peux-tu|pourrais-tu|pouvez-vous|pourriez-vous|tu\speux|vous\spouvez)\s(?:me|nous)\s
        (?:dire|montrer|indiquer|donner)(?:\ssi)?
  | (?:dis|dites|montre|montrez|indique|indiquez)-(?:moi|nous)(?:\ssi)?
  | (?:je\svoudrais|j'aimerais|je\sveux|je\ssouhaite|je\ssouhaiterais)\ssavoir(?:\ssi)?
  | (?:est-ce\sque\s(?:tu\ssais|vous\ssavez)|sais-tu|savez-vous)(?:\ssi)?
"""
_SPANISH = r"""
    (?:puedes?|podrías?|pueden|podrían)\s(?:decir|mostrar|indicar|dar)me(?:\ssi)?
  | me\s(?:puedes?|podrías?|pueden|podrían)\s(?:decir|mostrar|indicar|dar)(?:\ssi)?
  | (?:dígame|muéstrame|muéstreme|indícame)(?:\ssi)?
  | dime(?=\s(?:qué|que|cómo|cuándo|dónde|quién|cuál|cuánt[oa]s?|si)\s)  # a dime is a coin, too
  | (?:quiero|quisiera|querría|necesito|me\sgustaría)\ssaber(?:\ssi)?
  | (?:¿\s?)?(?:sabes|sabe\susted|sabe\salguien|alguien\ssabe)(?:\ssi)?
"""
_GREETING = r"(?:(?:hi|hello|hey|hallo|bonjour|salut|hola)(?:\sthere)?[,!.]?\s)?"
_PLEASE = r"(?:(?:please|bitte|s'il\s(?:te|vous)\spla[iî]t|por\sfavor),?\s)?¿?"
_FRAME = pattern(
    rf"{_GREETING}{_PLEASE}(?:{_ENGLISH}|{_GERMAN}|{_FRENCH}|{_SPANISH})(?:[,:]|(?=\s))\s?", re.VERBOSE
)


def unframed(text: str) -> str:
    """Return a query without the frame that it begins with; as it is where hardly anything would be left."""
    words = text.split()
    if not words or words[0].lower().replace("’", "'").strip("¿,!.") not in FRAME_OPENERS:
        return text
    typed = " ".join(words)
    found = _FRAME.match(typed.lower().replace("’", "'"))
    rest = typed[found.end() :] if found and len(typed.lower()) == len(typed) else ""
    left = sum(any(map(str.isalnum, word)) for word in rest.split())
    return rest if left >= _LEAST else text
