"""Which characters make a token and how they fold, exactly as FTS5's `unicode61` has it.

FTS5 froze its tables at Unicode 6.1: a character assigned since then is a token character there, and is not
lower-cased. Python's own tables move with its version, so neither can stand in for the other; these were
made by asking FTS5 about every code point, and a test asks again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from functools import cache
from itertools import accumulate

from concord.text.pattern import pattern

# Runs of separators in base 36: how far after the end of the last run, how long. Surrogates are separators.
_SEPARATORS = (
    "0 1c a 7 q 6 q 1b 1 7 2 1 1 3 2 1 3 1 n 1 v 1 cq 4 c e 5 7 1 1 1 h 5 1 7 2 1 1 1 9 1 7 6 4 2 1 2 1q "
    "5 1 8 1 5 2 1 1 32 1 3v 8 5s 6 15 2 4 1 1 1j 17 2 b 5 1 m 2 2 17 l a 4 2 1 2r 1 1 f 2 7 f 2 1 e 1 1 "
    "1 1 u r 2j b 1m 9 2 4 s 4 1 9 1 3 1 5 2 f q 3 2 1 3p r 1 4 1i 3 1 i 1 7 a 4 a 1 g 3 1k 1 1 7 2 2 2 "
    "3 9 1 a 2 e 2 6 2 5 3 1k 1 1 5 4 2 2 3 3 1 u 2 3 1 b 3 1k 1 1 8 1 3 1 3 k 2 c 2 f 3 1k 1 1 7 2 2 2 "
    "3 8 2 a 2 c 1 h 1 1n 5 3 3 1 4 9 1 r 8 6 3 1m 7 1 3 1 4 7 2 b 2 r 1 2 2 1k 1 1 7 1 3 1 4 7 2 b 2 u "
    "2 1m 7 1 3 1 4 9 1 a 2 l 1 8 2 1y 1 4 6 1 1 1 8 i 3 1o 1 2 7 4 1 7 9 a 2 2d 1 2 6 1 2 b 6 1f v k c "
    "1d n 5 b 1 10 1 f 1 d 28 k b 6 6 4 4 3 1 3 2 7 3 4 d c 1 1 a 6 2j 1 gx c 13 a 2u 1 h8 2 h 1 q 2 26 "
    "3 10 3 t 5 r 2 u 2 1s z 1 4 1 1 y f 4a 1 3a c 4 c 4 1 3 2 2y h 7 2 k y n 5 2 2 1h a 1 t 2 1 w 7 1 6 "
    "2a 5 1b h l z 3 3 u d 1k e 8 4 10 k 3 5 1q 2 1s 8 8 p 4 1 4 3 5n 13 l 4 cd 1 1 3 b 3 d 3 d 3 d 2 1 "
    "2t 5 6 a 5 b 5 h q m x f 2 1 4 1 2 a 1 1 3 5 6 1 1 1 1 1 1 4 1 b 2 4 5 5 4 1 1 1s h0 c 13 p b 29 26 "
    "m e8 1 39 u qh 3 a az 6 4 3 7 4 1 2 34 1 e 1 2o 27 1 c 1w q 1 2h c 5y q c 4 5 3 p 9 7 5 2 5 3 2h 4 "
    "3 1 2i 1 44 2 4 a w 10 s v b u 8 1 f w a 13 f 1r 1 74 534 1s h3k 1j 1j 2 7h 3 2n g w 1 28 8 8 n 9 2 "
    "2v 2 3b 1 3 1 4 1 n 9 a 4 1m 4 8 2 1e h 9 2 g i 6 3 17 a n d b 1 w 4 1b r g 2 21 e c 1 8 2 e 4 n 3 "
    "1 1 1g 1 1 3 2 2 5 2 1 1 s 2 b 7 3 2 6k b 8pe 1kw 5cu 1 a 1 3s g ak 2 58 2 2 q 6 7 9 z 1 j 1 4 43 1 "
    "1 f a 7 q 6 q b 3e 7 1 7 a 7 74 3 1g 9 1l h 6 c 1g 1a bl 1 1c 1 w6 1 5j 1 v 1 5d 3 1 2 5 4 14 3 4 1 "
    "g 9 12 1 55 7 xs 3 1h m 1e 3 19 i 1q 3 10 e b 4 1o 3 1c e 4 4 yq d 2pk 4 esd 1a g 4 j1p 6u a 13 2 "
    "51 y 1y 56 2f oa 1 p 1 v 1 p 1 v 1 p 1 v 1 p 1 v 1 p 1 4ks 2 7i 18 4 2s c f 2 e 2 f 1 f 1c v 1 1o 4 "
    "17 23 t d 17 5 9 7 2 4u x f 6 1 1y 3 k c 11 1 5 l h f 1r 1 1 1 52 1 4 3 1q 2 4 c o 43 1y 4 b 1c 1y "
    "1m 38 gwi5 1 u 2o 3k 6o "
)

# Each group: what the others in it fold to, then the others.
_FOLDS = (
    "aAÀÁÂÃÄÅàáâãäåĀāĂăĄąǍǎȀȁȂȃȦȧḀḁẠạẢảÅ bBḂḃḄḅḆḇ cCÇçĆćĈĉĊċČč dDĎďḊḋḌḍḎḏḐḑḒḓ "
    "eEÈÉÊËèéêëĒēĔĕĖėĘęĚěȄȅȆȇȨȩḘḙḚḛẸẹẺẻẼẽ fFḞḟ gGĜĝĞğĠġĢģǦǧǴǵḠḡ hHĤĥȞȟḢḣḤḥḦḧḨḩḪḫẖ "
    "iIÌÍÎÏìíîïĨĩĪīĬĭĮįİǏǐȈȉȊȋḬḭỈỉỊị jJĴĵǰ kKĶķǨǩḰḱḲḳḴḵK lLĹĺĻļĽľḶḷḺḻḼḽ mMḾḿṀṁṂṃ nNÑñŃńŅņŇňǸǹṄṅṆṇṈṉṊṋ "
    "oOÒÓÔÕÖòóôõöŌōŎŏŐőƠơǑǒǪǫȌȍȎȏȮȯỌọỎỏ pPṔṕṖṗ qQ rRŔŕŖŗŘřȐȑȒȓṘṙṚṛṞṟ sSŚśŜŝŞşŠšſȘșṠṡṢṣẛ "
    "tTŢţŤťȚțṪṫṬṭṮṯṰṱẗ uUÙÚÛÜùúûüŨũŪūŬŭŮůŰűŲųƯưǓǔȔȕȖȗṲṳṴṵṶṷỤụỦủ vVṼṽṾṿ wWŴŵẀẁẂẃẄẅẆẇẈẉẘ xXẊẋẌẍ "
    "yYÝýÿŶŷŸȲȳẎẏẙỲỳỴỵỶỷỸỹ zZŹźŻżŽžẐẑẒẓẔẕ ßẞ æÆ ðÐ øØ þÞ đĐ ħĦ ĳĲ ŀĿ łŁ ŋŊ œŒ ŧŦ ƀɃ ƃƂ ƅƄ ƈƇ ƌƋ ƒƑ ƕǶ ƙƘ "
    "ƚȽ ƞȠ ƣƢ ƥƤ ƨƧ ƭƬ ƴƳ ƶƵ ƹƸ ƽƼ ƿǷ ǆǄǅ ǉǇǈ ǌǊǋ ǖǕ ǘǗ ǚǙ ǜǛ ǝƎ ǟǞ ǡǠ ǣǢ ǥǤ ǭǬ ǯǮ ǳǱǲ ǻǺ ǽǼ ǿǾ ȝȜ ȣȢ ȥȤ "
    "ȫȪ ȭȬ ȱȰ ȼȻ ȿⱾ ɀⱿ ɂɁ ɇɆ ɉɈ ɋɊ ɍɌ ɏɎ ɐⱯ ɑⱭ ɒⱰ ɓƁ ɔƆ ɖƉ ɗƊ əƏ ɛƐ ɠƓ ɣƔ ɥꞍ ɦꞪ ɨƗ ɩƖ ɫⱢ ɯƜ ɱⱮ ɲƝ ɵƟ ɽⱤ "
    "ʀƦ ʃƩ ʈƮ ʉɄ ʊƱ ʋƲ ʌɅ ʒƷ ͱͰ ͳͲ ͷͶ ͻϽ ͼϾ ͽϿ άΆ έΈ ήΉ ίΊ αΑ βΒϐ γΓ δΔ εΕϵ ζΖ ηΗ θΘϑϴ ιΙι κΚϰ λΛ μµΜ νΝ "
    "ξΞ οΟ πΠϖ ρΡϱ σΣς τΤ υΥ φΦϕ χΧ ψΨ ωΩΩ ϊΪ ϋΫ όΌ ύΎ ώΏ ϗϏ ϙϘ ϛϚ ϝϜ ϟϞ ϡϠ ϣϢ ϥϤ ϧϦ ϩϨ ϫϪ ϭϬ ϯϮ ϲϹ ϸϷ "
    "ϻϺ аА бБ вВ гГ дД еЕ жЖ зЗ иИ йЙ кК лЛ мМ нН оО пП рР сС тТ уУ фФ хХ цЦ чЧ шШ щЩ ъЪ ыЫ ьЬ эЭ юЮ яЯ "
    "ѐЀ ёЁ ђЂ ѓЃ єЄ ѕЅ іІ їЇ јЈ љЉ њЊ ћЋ ќЌ ѝЍ ўЎ џЏ ѡѠ ѣѢ ѥѤ ѧѦ ѩѨ ѫѪ ѭѬ ѯѮ ѱѰ ѳѲ ѵѴ ѷѶ ѹѸ ѻѺ ѽѼ ѿѾ ҁҀ "
    "ҋҊ ҍҌ ҏҎ ґҐ ғҒ ҕҔ җҖ ҙҘ қҚ ҝҜ ҟҞ ҡҠ ңҢ ҥҤ ҧҦ ҩҨ ҫҪ ҭҬ үҮ ұҰ ҳҲ ҵҴ ҷҶ ҹҸ һҺ ҽҼ ҿҾ ӂӁ ӄӃ ӆӅ ӈӇ ӊӉ ӌӋ "
    "ӎӍ ӏӀ ӑӐ ӓӒ ӕӔ ӗӖ әӘ ӛӚ ӝӜ ӟӞ ӡӠ ӣӢ ӥӤ ӧӦ өӨ ӫӪ ӭӬ ӯӮ ӱӰ ӳӲ ӵӴ ӷӶ ӹӸ ӻӺ ӽӼ ӿӾ ԁԀ ԃԂ ԅԄ ԇԆ ԉԈ ԋԊ ԍԌ "
    "ԏԎ ԑԐ ԓԒ ԕԔ ԗԖ ԙԘ ԛԚ ԝԜ ԟԞ ԡԠ ԣԢ ԥԤ ԧԦ աԱ բԲ գԳ դԴ եԵ զԶ էԷ ըԸ թԹ ժԺ իԻ լԼ խԽ ծԾ կԿ հՀ ձՁ ղՂ ճՃ մՄ "
    "յՅ նՆ շՇ ոՈ չՉ պՊ ջՋ ռՌ սՍ վՎ տՏ րՐ ցՑ ւՒ փՓ քՔ օՕ ֆՖ ᵹꝽ ᵽⱣ ḉḈ ḕḔ ḗḖ ḝḜ ḯḮ ḹḸ ṍṌ ṏṎ ṑṐ ṓṒ ṝṜ ṥṤ ṧṦ "
    "ṩṨ ṹṸ ṻṺ ấẤ ầẦ ẩẨ ẫẪ ậẬ ắẮ ằẰ ẳẲ ẵẴ ặẶ ếẾ ềỀ ểỂ ễỄ ệỆ ốỐ ồỒ ổỔ ỗỖ ộỘ ớỚ ờỜ ởỞ ỡỠ ợỢ ứỨ ừỪ ửỬ ữỮ ựỰ "
    "ỻỺ ỽỼ ỿỾ ἀἈ ἁἉ ἂἊ ἃἋ ἄἌ ἅἍ ἆἎ ἇἏ ἐἘ ἑἙ ἒἚ ἓἛ ἔἜ ἕἝ ἠἨ ἡἩ ἢἪ ἣἫ ἤἬ ἥἭ ἦἮ ἧἯ ἰἸ ἱἹ ἲἺ ἳἻ ἴἼ ἵἽ ἶἾ ἷἿ "
    "ὀὈ ὁὉ ὂὊ ὃὋ ὄὌ ὅὍ ὑὙ ὓὛ ὕὝ ὗὟ ὠὨ ὡὩ ὢὪ ὣὫ ὤὬ ὥὭ ὦὮ ὧὯ ὰᾺ άΆ ὲῈ έΈ ὴῊ ήΉ ὶῚ ίΊ ὸῸ όΌ ὺῪ ύΎ ὼῺ ώΏ ᾀᾈ "
    "ᾁᾉ ᾂᾊ ᾃᾋ ᾄᾌ ᾅᾍ ᾆᾎ ᾇᾏ ᾐᾘ ᾑᾙ ᾒᾚ ᾓᾛ ᾔᾜ ᾕᾝ ᾖᾞ ᾗᾟ ᾠᾨ ᾡᾩ ᾢᾪ ᾣᾫ ᾤᾬ ᾥᾭ ᾦᾮ ᾧᾯ ᾰᾸ ᾱᾹ ᾳᾼ ῃῌ ῐῘ ῑῙ ῠῨ ῡῩ ῥῬ ῳῼ "
    "ⅎℲ ⅰⅠ ⅱⅡ ⅲⅢ ⅳⅣ ⅴⅤ ⅵⅥ ⅶⅦ ⅷⅧ ⅸⅨ ⅹⅩ ⅺⅪ ⅻⅫ ⅼⅬ ⅽⅭ ⅾⅮ ⅿⅯ ↄↃ ⰰⰀ ⰱⰁ ⰲⰂ ⰳⰃ ⰴⰄ ⰵⰅ ⰶⰆ ⰷⰇ ⰸⰈ ⰹⰉ ⰺⰊ ⰻⰋ ⰼⰌ ⰽⰍ ⰾⰎ "
    "ⰿⰏ ⱀⰐ ⱁⰑ ⱂⰒ ⱃⰓ ⱄⰔ ⱅⰕ ⱆⰖ ⱇⰗ ⱈⰘ ⱉⰙ ⱊⰚ ⱋⰛ ⱌⰜ ⱍⰝ ⱎⰞ ⱏⰟ ⱐⰠ ⱑⰡ ⱒⰢ ⱓⰣ ⱔⰤ ⱕⰥ ⱖⰦ ⱗⰧ ⱘⰨ ⱙⰩ ⱚⰪ ⱛⰫ ⱜⰬ ⱝⰭ ⱞⰮ ⱡⱠ "
    "ⱥȺ ⱦȾ ⱨⱧ ⱪⱩ ⱬⱫ ⱳⱲ ⱶⱵ ⲁⲀ ⲃⲂ ⲅⲄ ⲇⲆ ⲉⲈ ⲋⲊ ⲍⲌ ⲏⲎ ⲑⲐ ⲓⲒ ⲕⲔ ⲗⲖ ⲙⲘ ⲛⲚ ⲝⲜ ⲟⲞ ⲡⲠ ⲣⲢ ⲥⲤ ⲧⲦ ⲩⲨ ⲫⲪ ⲭⲬ ⲯⲮ ⲱⲰ ⲳⲲ "
    "ⲵⲴ ⲷⲶ ⲹⲸ ⲻⲺ ⲽⲼ ⲿⲾ ⳁⳀ ⳃⳂ ⳅⳄ ⳇⳆ ⳉⳈ ⳋⳊ ⳍⳌ ⳏⳎ ⳑⳐ ⳓⳒ ⳕⳔ ⳗⳖ ⳙⳘ ⳛⳚ ⳝⳜ ⳟⳞ ⳡⳠ ⳣⳢ ⳬⳫ ⳮⳭ ⳳⳲ ⴀႠ ⴁႡ ⴂႢ ⴃႣ ⴄႤ ⴅႥ "
    "ⴆႦ ⴇႧ ⴈႨ ⴉႩ ⴊႪ ⴋႫ ⴌႬ ⴍႭ ⴎႮ ⴏႯ ⴐႰ ⴑႱ ⴒႲ ⴓႳ ⴔႴ ⴕႵ ⴖႶ ⴗႷ ⴘႸ ⴙႹ ⴚႺ ⴛႻ ⴜႼ ⴝႽ ⴞႾ ⴟႿ ⴠჀ ⴡჁ ⴢჂ ⴣჃ ⴤჄ ⴥჅ ⴧჇ "
    "ⴭჍ ꙁꙀ ꙃꙂ ꙅꙄ ꙇꙆ ꙉꙈ ꙋꙊ ꙍꙌ ꙏꙎ ꙑꙐ ꙓꙒ ꙕꙔ ꙗꙖ ꙙꙘ ꙛꙚ ꙝꙜ ꙟꙞ ꙡꙠ ꙣꙢ ꙥꙤ ꙧꙦ ꙩꙨ ꙫꙪ ꙭꙬ ꚁꚀ ꚃꚂ ꚅꚄ ꚇꚆ ꚉꚈ ꚋꚊ ꚍꚌ ꚏꚎ ꚑꚐ "
    "ꚓꚒ ꚕꚔ ꚗꚖ ꜣꜢ ꜥꜤ ꜧꜦ ꜩꜨ ꜫꜪ ꜭꜬ ꜯꜮ ꜳꜲ ꜵꜴ ꜷꜶ ꜹꜸ ꜻꜺ ꜽꜼ ꜿꜾ ꝁꝀ ꝃꝂ ꝅꝄ ꝇꝆ ꝉꝈ ꝋꝊ ꝍꝌ ꝏꝎ ꝑꝐ ꝓꝒ ꝕꝔ ꝗꝖ ꝙꝘ ꝛꝚ ꝝꝜ ꝟꝞ "
    "ꝡꝠ ꝣꝢ ꝥꝤ ꝧꝦ ꝩꝨ ꝫꝪ ꝭꝬ ꝯꝮ ꝺꝹ ꝼꝻ ꝿꝾ ꞁꞀ ꞃꞂ ꞅꞄ ꞇꞆ ꞌꞋ ꞑꞐ ꞓꞒ ꞡꞠ ꞣꞢ ꞥꞤ ꞧꞦ ꞩꞨ ａＡ ｂＢ ｃＣ ｄＤ ｅＥ ｆＦ "
    "ｇＧ ｈＨ ｉＩ ｊＪ ｋＫ ｌＬ ｍＭ ｎＮ ｏＯ ｐＰ ｑＱ ｒＲ ｓＳ ｔＴ ｕＵ ｖＶ ｗＷ ｘＸ ｙＹ ｚＺ "
    "𐐨𐐀 𐐩𐐁 𐐪𐐂 𐐫𐐃 𐐬𐐄 𐐭𐐅 𐐮𐐆 𐐯𐐇 𐐰𐐈 𐐱𐐉 𐐲𐐊 𐐳𐐋 𐐴𐐌 𐐵𐐍 𐐶𐐎 𐐷𐐏 𐐸𐐐 𐐹𐐑 𐐺𐐒 𐐻𐐓 "
    "𐐼𐐔 𐐽𐐕 𐐾𐐖 𐐿𐐗 𐑀𐐘 𐑁𐐙 𐑂𐐚 𐑃𐐛 𐑄𐐜 𐑅𐐝 𐑆𐐞 𐑇𐐟 𐑈𐐠 𐑉𐐡 𐑊𐐢 𐑋𐐣 𐑌𐐤 𐑍𐐥 𐑎𐐦 𐑏𐐧 "
)

# Combining marks that vanish inside a token; every other combining mark ends it.
_DIACRITICS = (
    "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u0309\u030a\u030b\u030c\u030f"
    "\u0311\u031b\u0323\u0324\u0325\u0326\u0327\u0328\u032d\u032e\u0330\u0331"
)

_SPACE = ord(" ")
_BMP_END = 0x10000  # only these are remembered, so that no text can make the tables grow without bound


@cache
def _edges() -> list[int]:
    """Return where runs of separators start and end, in turn."""
    return list(accumulate(int(number, 36) for number in _SEPARATORS.split()))


@cache
def _folds() -> dict[int, int]:
    """Return what a character folds to, where that is another."""
    return {ord(source): ord(group[0]) for group in _FOLDS.split() for source in group[1:]}


class _Separated(dict[int, int | None]):
    """A table for `str.translate` that turns separators into spaces and drops diacritics."""

    def __init__(self, known: Mapping[int, int | None]) -> None:
        super().__init__(known)
        # Bytes are translated in a quarter of the time, and of ASCII every character becomes one.
        self.of_ascii = bytes(known[code] or 0 for code in range(0x80)) + bytes(range(0x80, 0x100))

    def __missing__(self, code: int) -> int | None:
        value = self._decide(code)
        if code < _BMP_END:
            self[code] = value
        return value

    def _decide(self, code: int) -> int | None:
        return _SPACE if bisect_right(_edges(), code) % 2 else code


class _Folded(_Separated):
    """The same, and what is left is lower-cased and loses its accents."""

    def _decide(self, code: int) -> int | None:
        kept = super()._decide(code)  # asked first: a dash or a quote need not build the table of folds
        return kept if kept == _SPACE else _folds().get(code) or kept


# ASCII is here from the start: a search among English texts need not build what the rest takes.
_DROPPED = dict.fromkeys(map(ord, _DIACRITICS))
_ASCII = {code: code if chr(code).isalnum() else _SPACE for code in range(0x80)}
_FOLDED_ASCII = {code: ord(chr(kept).lower()) for code, kept in _ASCII.items()}
_SEPARATED = _Separated(_ASCII | _DROPPED)
_FOLDED_TABLE = _Folded(_FOLDED_ASCII | _DROPPED)
_ALIGNED = _Folded(_FOLDED_ASCII)
_ASCII_BYTES = bytes(_ASCII)
_SPELT = str.maketrans(
    {"ß": "ss", "ø": "o", "ł": "l", "œ": "oe", "æ": "ae", "đ": "d", "þ": "th", "ı": "i"}
    | {"ẞ": "ss", "Ø": "O", "Ł": "L", "Œ": "Oe", "Æ": "Ae", "Đ": "D", "Þ": "Th"}
)
_CASED = pattern(r"[\u00aa-\u052f\u1e00-\u1eff]")
_MANY = 64  # different characters beyond ASCII, of which each would be a pass over the text


def _translated(text: str, table: _Separated) -> str:
    """Translate a text: what is ASCII as bytes, which takes a thirtieth of the time, then the few others."""
    if text.isascii():
        return text.encode().translate(table.of_ascii).decode()
    beyond = beyond_ascii(text)
    if 2 * len(beyond) > len(text) or len(others := set(beyond)) > _MANY:
        return text.translate(table)
    # No byte of another character is ASCII, so these stay as they are.
    data = text.encode("utf-8", "surrogatepass").translate(table.of_ascii)
    text = data.decode("utf-8", "surrogatepass")
    for other in others:
        value = table[ord(other)]
        if value != ord(other):
            text = text.replace(other, "" if value is None else chr(value))
    return text


def separated(text: str) -> list[str]:
    """Return the runs of token characters in a text, as they are written there."""
    return _translated(text, _SEPARATED).split()


def folded(text: str) -> list[str]:
    """Return the tokens of a text before stemming: lower case, without accents."""
    return spaced(text).split()


def spaced(text: str) -> str:
    """Return the same tokens as one text, with at least one space between two of them."""
    return _translated(text, _FOLDED_TABLE)


def aligned(text: str) -> str:
    """Return a text of the same length with spaces for separators, its letters folded where they stand."""
    return _translated(text, _ALIGNED)


def has_undivided(text: str) -> bool:
    """Whether a text holds letters that lose no accent and have another spelling: ß as ss, ł as l."""
    return not text.isascii() and not _SPELT.keys().isdisjoint(map(ord, set(beyond_ascii(text))))


def spelt_out(text: str) -> str:
    """Return a text with such letters as people without a key for them write: Strasse, Lodz, oeufs."""
    spelt = text.translate(_SPELT)
    return spelt.upper() if text.isupper() else spelt  # no capital may stand where an identifier has a hump


def beyond_ascii(text: str) -> str:
    """Return the characters of a text that are not ASCII.

    To drop the ASCII ones from its bytes takes a fifth of the time of looking at every character.
    """
    if text.isascii():
        return ""
    return (
        text.encode("utf-8", "surrogatepass").translate(None, _ASCII_BYTES).decode("utf-8", "surrogatepass")
    )


def is_near(text: str) -> bool:
    """Whether a text surely holds no script without spaces, no wide form and no emoji."""
    return text.isascii() or not any(map(_is_far, set(beyond_ascii(text))))


def _is_far(character: str) -> bool:
    """Whether a character comes after the alphabets and is no dash, arrow or the like.

    A pattern of these ranges takes longer to compile than a quick search takes.
    """
    return character >= "\u0e00" and (not "\u1800" <= character < "\u2e80" or character == "\u20bf")


def has_foreign_case(text: str) -> bool:
    """Whether a text may hold letters with case that are not of ASCII."""
    return not text.isascii() and _CASED.search(beyond_ascii(text)) is not None


def is_token_character(character: str) -> bool:
    """Whether FTS5 would make this character part of a token."""
    return not bisect_right(_edges(), ord(character)) % 2 and character not in _DIACRITICS


def has_digit(text: str) -> bool:
    """Whether a text has a digit: most have none, and need not be looked through for numbers or dates."""
    return any(map(str.isdigit, text))


def latin_share(text: str) -> float:
    """Return how many of a text's letters are of the Latin script; all, where there are no letters."""
    if text.isascii():
        return 1.0
    letters = [character for character in text if character.isalpha()]
    # U+024F ends Latin Extended-B; U+1E00–U+1EFF holds the rest that living languages use.
    latin = sum(character <= "\u024f" or "\u1e00" <= character <= "\u1eff" for character in letters)
    return latin / len(letters) if letters else 1.0
