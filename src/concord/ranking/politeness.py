"""Which words of a query are only polite? "Can you tell me", "ich möchte wissen", "dites-moi", ", thanks".

Politeness says nothing about the subject, but its words would count as missing from a passage. What is taken
off is a closed list of whole phrases at the beginning of a query: `show me` is one, the `show` of `git show`
and `SHOW TABLES` is not. Thanks at the end need a sign before them: "how to say thank you" asks about them.
"""

from __future__ import annotations

import re

from concord.ranking.lexicon import LAST_OF_THANKS, POLITE_OPENERS
from concord.text.pattern import pattern

_LEAST = 2  # words that must be left: who types "show me" and a name may look for just that
_LONGEST_THANKS = 60  # characters; a whole pasted page would be looked through for them

_ENGLISH = r"""
    (?:(?:can|could|would|will)\s(?:you|someone|anyone|anybody|somebody)\s(?:please\s|kindly\s)?)?
        (?:(?:tell|show|give)\sme|explain\sto\s(?:me|us))(?:\splease)?(?:\sabout|\sif|\swhether)?
  | (?:can|could|would|will)\s(?:you|someone|anyone|anybody|somebody)\s(?:please\s|kindly\s)?explain
  | (?<=please\s)explain
  | (?:i\swould|i'd|we\swould|we'd)\slike\sto\s(?:know|find\sout|learn)(?:\sabout|\sif|\swhether)?
  | (?:i|we)\s(?:want|wanted|need)\sto\sknow(?:\sabout|\sif|\swhether)?
  | i(?:\sam|'m|\swas)\swondering(?:\sabout|\sif|\swhether)?
  | do\syou\s(?:happen\sto\s)?know(?:\sabout|\sif|\swhether)?
  | does\s(?:anyone|anybody|someone|somebody)\sknow(?:\sabout|\sif|\swhether)?
"""
_GERMAN = r"""
    (?:(?:kannst|könntest|würdest)\sdu|(?:können|könnten|würden)\ssie)\s(?:mir|uns)\s(?:bitte\s)?
        (?:sagen|zeigen|verraten|nennen|erklären)(?:,?\sob)?
  | (?:sage?|zeige?|nenne|verrate?|erkläre?)\s(?:mir|uns)(?:\sbitte)?(?:,?\sob)?
  | (?:sagen|zeigen|nennen|verraten|erklären)\ssie\s(?:mir|uns)(?:\sbitte)?(?:,?\sob)?
  | ich\s(?:möchte|würde|wollte|will)\s(?:gerne?\s)?(?:wissen|erfahren)(?:,?\sob)?
  | (?:wei(?:ß|ss)t\sdu|wissen\ssie|wei(?:ß|ss)\s(?:jemand|einer))(?:,?\sob)?
"""
_FRENCH = r"""
    (?:peux-tu|pourrais-tu|pouvez-vous|pourriez-vous|tu\speux|vous\spouvez)\s(?:me|nous)\s
        (?:dire|montrer|indiquer|donner)(?:\ssi)?
  | (?:peux-tu|pourrais-tu|pouvez-vous|pourriez-vous|tu\speux|vous\spouvez)\s(?:m'|nous\s)expliquer
  | (?:dis|dites|montre|montrez|indique|indiquez|explique|expliquez)-(?:moi|nous)(?:\ssi)?
  | (?:je\svoudrais|j'aimerais|je\sveux|je\ssouhaite|je\ssouhaiterais)\ssavoir(?:\ssi)?
  | (?:est-ce\sque\s(?:tu\ssais|vous\ssavez)|sais-tu|savez-vous)(?:\ssi)?
"""
_SPANISH = r"""
    (?:puedes?|podrías?|pueden|podrían)\s(?:decir|mostrar|indicar|dar|explicar)me(?:\ssi)?
  | me\s(?:puedes?|podrías?|pueden|podrían)\s(?:decir|mostrar|indicar|dar|explicar)(?:\ssi)?
  | (?:dígame|muéstrame|muéstreme|indícame|explícame|explíqueme)(?:\ssi)?
  | dime(?=\s(?:qué|que|cómo|cuándo|dónde|quién|cuál|cuánt[oa]s?|si)\s)  # a dime is a coin, too
  | (?:quiero|quisiera|querría|necesito|me\sgustaría)\ssaber(?:\ssi)?
  | (?:¿\s?)?(?:sabes|sabe\susted|sabe\salguien|alguien\ssabe)(?:\ssi)?
"""
_GREETING = r"(?:(?:hi|hello|hey|hallo|bonjour|salut|hola)(?:\sthere)?[,!.]?\s)?"
_PLEASE = r"(?:(?:please|bitte|s'il\s(?:te|vous)\spla[iî]t|por\sfavor),?\s)?¿?"
_OPENING = pattern(
    rf"{_GREETING}{_PLEASE}(?:{_ENGLISH}|{_GERMAN}|{_FRENCH}|{_SPANISH})(?:[,:]|(?=\s))\s?", re.VERBOSE
)

_THANKS = pattern(
    r"""
    (?:\s?[,.;:!–—-]+|(?<=\?))\s(?:and\s|und\s|et\s|y\s)?¡?
    (?:
        (?:many\s)?thanks(?:\sa\slot|\sso\smuch|\svery\smuch)?(?:\sin\sadvance)?
      | thank\syou(?:\sso\smuch|\svery\smuch)?(?:\sin\sadvance)?
      | thx | cheers | please
      | (?:vielen\s|besten\s|herzlichen\s|schönen\s)?dank(?:\sim\svoraus)?
      | danke(?:\sdir|\sihnen)?(?:\sschön|\ssehr|\sim\svoraus)? | dankeschön | bitte
      | merci(?:\sbeaucoup|\sbien)?(?:\sd'avance)? | s'il\s(?:te|vous)\spla[iî]t
      | (?:muchas\s|mil\s)?gracias | por\sfavor
    )\s?[.!?…:)]*$
    """,
    re.VERBOSE,
)


def without_politeness(text: str) -> str:
    """Return a query without its polite phrases, unless hardly anything would be left."""
    return _without_opening(_without_thanks(text))


def _without_thanks(text: str) -> str:
    """Return a query without the thanks at its end."""
    words = text.split()
    if len(words) <= _LEAST or _lowered(words[-1]).strip("¡.!?…:)") not in LAST_OF_THANKS:
        return text
    typed = " ".join(words)
    found = _THANKS.search(_lowered(typed), max(0, len(typed) - _LONGEST_THANKS))
    rest = typed[: found.start()] if found else ""
    return rest if _is_enough(rest) else text


def _without_opening(text: str) -> str:
    """Return a query without the polite phrase that it begins with."""
    words = text.split()
    if not words or _lowered(words[0]).strip("¿,!.") not in POLITE_OPENERS:
        return text
    typed = " ".join(words)
    found = _OPENING.match(_lowered(typed))
    rest = typed[found.end() :] if found else ""
    return rest if _is_enough(rest) else text


def _lowered(typed: str) -> str:
    """Return a text in lower case, unless its length would change."""
    lowered = typed.lower().replace("’", "'")
    return lowered if len(lowered) == len(typed) else typed


def _is_enough(rest: str) -> bool:
    return sum(any(map(str.isalnum, word)) for word in rest.split()) >= _LEAST
