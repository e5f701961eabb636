"""The other spelling of a word: colour and color, organise and organize, Müller and Mueller.

Looked for beside the one that was typed. Rules may make what is no word (promize, colourado): nothing holds
it, so that it finds nothing. What is another word (prise and prize, poets and pots) is left out.
"""

from __future__ import annotations

from functools import cache, lru_cache

from concord.text.characters import folded
from concord.text.pattern import pattern

# How words begin, as the British and as the Americans have it.
_OUR = """
    arbour ardour armour behaviour candour clamour colour demeanour discolour endeavour favour fervour flavour
    glamour harbour honour humour labour misbehaviour misdemeanour neighbour odour parlour rancour rigour
    rumour saviour savour splendour tumour valour vapour vigour
"""
_RE = """
    calibre centimetre centre fibre kilometre litre lustre metre millilitre millimetre nanometre sabre
    sombre spectre theatre
"""
_PAIRS = """
    licenc licens, defenc defens, offenc offens, pretenc pretens, practis practic, catalogue catalog,
    dialogue dialog, analogue analog, grey gray, aluminium aluminum, artefact artifact, mould mold,
    plough plow, sceptic skeptic, judgement judgment, acknowledgement acknowledgment, ageing aging,
    jewellery jewelry, enquir inquir, skilful skillful, enrolment enrollment, instalment installment,
    sulph sulf, centred centered, centring centering, manoeuvre maneuver, manoeuvring maneuvering,
    anaesthe anesthe, archaeolog archeolog, aetiolog etiolog, caesium cesium, diarrhoea diarrhea,
    encyclopaedi encyclopedi, faecal fecal, faeces feces, foetal fetal, foetus fetus, gynaecolog gynecolog,
    haema hema, haemo hemo, oedema edema, oesophag esophag, oestr estr, orthopaedic orthopedic,
    paediatr pediatr
"""
_SHORTEST_ROOT = 4  # letters that such words have at least in common

_ISE = pattern(r"([a-z]{3,}[iy])([sz])((?:e|es|ed|er|ers|ing|able|ations?|ational)$)")
_AEMIA = pattern(r"(a?)e(mi(?:a|as|c)$)")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
# An umlaut as people without a key for it write it: ue. Not at the end of a word (blue, does, fuel, Michael),
# and not after another vowel or a q (neue, Quelle).
_SPELT_UMLAUT = pattern(r"(?<![aeiouyq])([aou])e(?=[bcdfghklmnprstwxz][a-z])")
_NO_UMLAUTS = frozenset({"aerial", "aerials", "guest", "guests", "poets"})


@lru_cache(maxsize=1024)
def other_spellings(word: str) -> tuple[str, ...]:
    """Return the other spellings of a typed word, folded; most words have none, several words never."""
    tokens = folded(word)
    if len(tokens) != 1 or len(tokens[0]) < _SHORTEST_ROOT:
        return ()
    found = (_across_the_ocean(tokens[0]), _with_umlauts_spelt(word), _with_umlauts(tokens[0]))
    return tuple(dict.fromkeys(one for one in found if one and one != tokens[0]))


def _across_the_ocean(token: str) -> str | None:
    for own, other in _beginnings().get(token[:_SHORTEST_ROOT], ()):
        if token.startswith(own):
            return other + token[len(own) :]
    if found := _ISE.match(token):
        return found[1] + ("z" if found[2] == "s" else "s") + found[3]
    if found := _AEMIA.search(token):
        return token[: found.start()] + ("e" if found[1] else "ae") + found[2]
    return None


def _with_umlauts_spelt(word: str) -> str | None:
    return None if word.isascii() else "".join(folded(word.translate(_UMLAUTS)))


def _with_umlauts(token: str) -> str | None:
    """Return a token with u for ue and the like: the index keeps umlauts without their dots."""
    return _SPELT_UMLAUT.sub(r"\1", token) if token not in _NO_UMLAUTS else None


@cache
def _beginnings() -> dict[str, list[tuple[str, str]]]:
    """Return both spellings of the beginnings of words, longest first, by their first letters."""
    pairs = [(word, word.removesuffix("our") + "or") for word in _OUR.split()]
    pairs += [(word, word.removesuffix("re") + "er") for word in _RE.split()]
    for pair in _PAIRS.split(","):
        british, american = pair.split()
        pairs.append((british, american))
    found: dict[str, list[tuple[str, str]]] = {}
    both = [*pairs, *((american, british) for british, american in pairs)]
    for own, other in sorted(both, key=lambda pair: -len(pair[0])):
        found.setdefault(own[:_SHORTEST_ROOT], []).append((own, other))
    return found
