r"""Characters that roff has names for: `\(bu`, `\[rs]`, `\('e`, `\[u20AC]`."""

from __future__ import annotations

import re
import unicodedata

# As groff_char(7) has them, those that occur in manuals: each name and its character. A minus is a dash, as
# people type it.
_TABLE = """
em — en – hy - mi - bu • ci ○ sq □ lq “ rq ” oq ‘ cq ’ aq ' dq " Bq „ bq ‚ Fo « Fc » fo ‹ fc › rs \\ sl / ba |
bb ¦ or | br │ rn ‾ ru _ ul _ at @ sh # Do $ ct ¢ Eu € eu € Ye ¥ Po £ Cs ¤ co © rg ® tm ™ sc § ps ¶ dg † dd ‡
r! ¡ r? ¿ ha ^ ti ~ ga ` aa ´ ad ¨ ac ¸ ah ˇ ab ˘ a- ¯ a. ˙ ao ˚ ho ˛ lB [ rB ] lC { rC } la ⟨ ra ⟩ lh ☜ rh ☞
OK ✓ CR ↵ de ° %0 ‰ fm ′ sd ″ mc µ Of ª Om º S1 ¹ S2 ² S3 ³ 12 ½ 14 ¼ 34 ¾ mu × di ÷ +- ± t+- ± ** ∗ eq = == ≡
!= ≠ <= ≤ >= ≥ << ≪ >> ≫ pl + no ¬ tno ¬ ap ∼ ~~ ≈ ~= ≈ =~ ≅ pt ∝ if ∞ is ∫ sum ∑ product ∏ sr √ pd ∂ gr ∇
te ∃ fa ∀ mo ∈ nm ∉ ca ∩ cu ∪ sb ⊂ sp ⊃ ib ⊆ ip ⊇ AN ∧ OR ∨ es ∅ tf ∴ 3d ∴ st ∋ md ⋅ pc · lz ◊ Ah ℵ
-> → <- ← <> ↔ ua ↑ da ↓ va ↕ rA ⇒ lA ⇐ hA ⇔ uA ⇑ dA ⇓ an ⎯
AE Æ ae æ OE Œ oe œ ss ß IJ Ĳ ij ĳ -D Ð Sd ð TP Þ Tp þ /L Ł /l ł /O Ø /o ø oA Å oa å .i ı .j ȷ
ff ff fi fi fl fl Fi ffi Fl ffl
*a α *b β *g γ *d δ *e ε *z ζ *y η *h θ *i ι *k κ *l λ *m μ *n ν *c ξ *o ο *p π *r ρ *s σ *t τ *u υ *f φ *x χ
*q ψ *w ω *A Α *B Β *G Γ *D Δ *E Ε *Z Ζ *Y Η *H Θ *I Ι *K Κ *L Λ *M Μ *N Ν *C Ξ *O Ο *P Π *R Ρ *S Σ *T Τ *U Υ
*F Φ *X Χ *Q Ψ *W Ω ts ς
"""
_NAMED = _TABLE.split()
CHARACTERS = dict(zip(_NAMED[::2], _NAMED[1::2], strict=True))

_ACCENTS = {
    "'": "\u0301",
    "`": "\u0300",
    "^": "\u0302",
    ":": "\u0308",
    "~": "\u0303",
    ",": "\u0327",
    "v": "\u030c",
}
_CODE = re.compile(r"u([0-9A-Fa-f]{4,6})(?:_[0-9A-Fa-f_]*)?|char(\d{1,3})")


def character(name: str) -> str:
    """Return the character of a name; nothing for one that nobody knows."""
    if name in CHARACTERS:
        return CHARACTERS[name]
    if len(name) == 2 and name[0] in _ACCENTS and name[1].isalpha():
        return unicodedata.normalize("NFC", name[1] + _ACCENTS[name[0]])
    if code := _CODE.fullmatch(name):
        parts = [int(part, 16) for part in name[1:].split("_") if part] if code[1] else [int(code[2])]
        return "".join(map(numbered, parts))
    return name if len(name) == 1 else ""


def numbered(code: int) -> str:
    """Return the character of a number; nothing for one that no text can hold."""
    return chr(code) if 32 <= code < 0xD800 or 0xE000 <= code <= 0x10FFFF else ""
