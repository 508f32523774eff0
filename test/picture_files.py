"""Small files that Pillow 13 wrote: four patches of one colour each, 48 times 32 pixels, and some depths.

The patches are those of ``PATCHES``: top left, top right, bottom left, bottom right.
"""

import base64

PATCHES = ((200, 30, 40), (20, 180, 60), (40, 60, 210), (220, 200, 90))
"""Red, green and blue of each patch."""

DEPTHS_MM = ((0, 1000, 2000, 3000), (4000, 5000, 10_000, 65_535))
"""The depths of ``PNG_DEPTH``, each of 8 times 8 pixels."""

_FILES = {
    'JPEG': (
        '|JeWF01!$>Nk#wx0RR9200961|JwjV00IF40RaI50RaI50s;a81OoyB0s;jD1Oo&H1qKEN1qKEN2MGuU2MGr'
        'T1_%oX2?`1d3JL}Y3k(Yi3<(Mf3jf;xLjeK;0s;a81p@;G3I_%U3JMAe3JMAe3JMAe3JMAe3JMAe3JMAe3JM'
        'Ae3JMAe3JMAe3JMAe3JMAe3JMAe3JU+g01*fPAOJ7}0TBQK5di}c0sq7R9{>OW1pxs80RaI300000000010s'
        '{mE1_uZU3Jd?l0JRVR0s#X90t5pE1q1{D00Dgg0s{a95d{(<F+m0sQDFxnaTGFvk)a49Lb1UWQqk}vGh%Xr2'
        '?`b$7#SKRCMPH<Dl|1VH#j*uLqtVJM@UIZQ&d$}S6EqEV`OD!XJ~0^b98lfcX)YvgM@{Khlq)al9QB`mY0~B'
        'nxdnmrKYE-sj9NGw6(UkxVgH*!^FkL$H>Xb($mz{*4NnC+Tr5k<mKk)=;`Y5^7Hid_V@Vt`v1fL9{~UZ0RaI'
        '40RaI40RR91000010s{mE1_uZU3Jd?l0JRYS0s#U91Oo&I1q1{D0Rndb0RjUN1O*{61`<J02Vrp&A~Jyp6he'
        '`qvB3!=Gg9ysVsg<679=#`CGi&+85$-hC@Cs6Ha9pqIzvQ7Mn_0VN>fx-R##YAT4Q8oW@l(=YIAgTc6WGrdV'
        '+(5g@%WSiHeewl$Dm3n3<ZQqok##r>Lo_va__cwzs&sy28W6#m2|T$;#5x)YaD4*xB0R<K*S$=jiF`^7Hid_'
        'V@Vt`v2Mh3<CiG0ucid06zfv9={(y)c~LZfIg6~n?L4UC;*@jo9pQh`e+IOC<EyV`Lq6I!hi|@`3}F^!}|az'
        '0H6=vivIwe^ZJk|0H6=Sdj9~T1Nm$y0H6=vivIwe^ZJk|0H6>5*#'
    ),
    'JPEG_PROGRESSIVE': (
        '|JeWF01!$>Nk#wx0RR9200961|JwjV00IF40RaI50RaI50s;a81OoyB0s;jD1Oo&H1qKEN1qKEN2MGuU2MGr'
        'T1_%oX2?`1d3JL}Y3k(Yi3<(Mf3jf;xLjeK;0s;a81p@;G3I_%U3JMAe3JMAe3JMAe3JMAe3JMAe3JMAe3JM'
        'Ae3JMAe3JMAe3JMAe3JMAe3JMAe3JU+i01*fPAOJ7}0TBQK5di}c0sq7R761VO0RR910000000000000072>'
        '-+Y836$R0|5a50000000000000052MGuU|Jncy0|5X65CaeZ00EKs{-^?x8<}8D<h0NVL~dn)A?@pc4e6csk'
        'QgsSD$qBkciKRI|HJ?k5CH%H00000000000000006_oR00;pA009L8NB_hC6cGUc000000000000000002P$'
        '+5iXv0|5a)0Z0GD02C1c0000000000000000000$|Jncu0RjO5KLJPo!~hf!0RR91000000000000000K>yk'
        'R2mt{A20sEv|HJ?k5CH%H00000000000000006_oR00;pA00BQCNB`OY3<CiG0ssR5000mG0000000000|HJ'
        '?k5di=I00000000000000006_oR00;pC0RcY{NB_hC6cGUc000000000000000002P$+5iXv0s#R(5J&&S02'
        'B}b0000000000000000000$|Jncu0RaF3KM+U%*#'
    ),
    'JPEG_GREY': (
        '|JeWF01!$>Nk#wx0RR9200961|JwjV00IF40RaI50RaI50s;a81OoyB0s;jD1Oo&H1qKEN1qKEN2MGuU2MGr'
        'T1_%oX2?`1d3JL}Y3k(Yi3<(Mf3je?W3kU!p05Aao5di<h03QGV0R;g80RaI400000000000RjUA1qKHQ2?`'
        '7U!~nGr00IF60|EpC1qB2I0004f0RjU61Q7)iAu&M)6H#FYB5@QlfsvsIBSNvk6;jdgBr{@if(Z&17Z@2DB_'
        '<~*DJnEIHa9pqIzvQ7Mn_0VN>fx-R##YAT4Q8oW@l(=YIAgTc6WGrdV_?8hKGoWijtF*m6n&7nVO=bq@|{(s'
        'Hv*5v$VCgx45~w!o$SH#>dFX%F@%+)z;V8+1laa<K*S$=jiF`@$&QZ_4fDp`TGCb00;pA002J#`5uZZ=?W;X'
        'o9LpxkfMtD4vH)HqKYf<UWzOCqKYg3*#'
    ),
    'JPEG_CMYK': (
        '|JeWT01iQ9Z(?NtWB>pF0095n07C!*0RaI40RjO50RjR70s;gB0s;a81q1{G1O^2L1_lKN1_lQS2nGiU2L=W'
        'R3kV4c3JMAe1_%ob3knPg3JMDUzyK5o03ZM`1Va%3O%VWD5dcdO0RO}Q9{>OW1pxs80RaI300000000010s{'
        'mE1_uZU3Jd?l0JRVR0s#X90t5pE1q1{D00Dgg0s{a95d{(<F+m0sQDFxnaTGFvk)a49Lb1UWQqk}vGh%Xr2?'
        '`b$7#SKRCMPH<Dl|1VH#j*uLqtVJM@UIZQ&d$}S6EqEV`OD!XJ~0^b98lfcX)YvgM@{Khlq)al9QB`mY0~Bn'
        'xdnmrKYE-sj9NGw6(UkxVgH*!^FkL$H>Xb($mz{*4NnC+Tr5k<mKk)=;`Y5^7Hid_V@Vt`v2Mh4g^C0O#oQ{'
        'O8@{r0R14Z$9nvquiwfjqKYV@ivCOM`dF_}qKYV@iYTJLtqT5W>&xh(iYTIrD6izczom-x3MitAD58oh)GP3'
        'Qzom*OqKYV@iYxliujs<R2k4@TD58oeujIbJocjIXqKYV@iYTJLtqT5(EAW1bD58oeqKg07'
    ),
    'PNG': (
        'iBL{Q4GJ0x0000DNk~Le0000m0000W2m$~A0Nb`~O8@`>SxH1eRCt{2&@mCfAOHlxkck9pYQ!J{IZ=R!C_z>'
        'vT=NCRt$?4KFT3?CVXPY2xg#q<1`&gZLBt?p5HW}tM4s8c$k48DWaqet3?c>*gNQ-IAYu?Pi2PS^1kydnLT~'
        '^8002ovPDHLkV1f'
    ),
    'PNG_ALPHA': (
        'iBL{Q4GJ0x0000DNk~Le0000m0000W2nGNE094fb8~^|SUr9tkRCt{2(LoJ>FcbvQLXgmN&xolA<WxaLpro!'
        'q#WEq8Ct!aje_QQ*N>HCQIbZhZ`Uec489+0DW&q6qngKKeXvfv==z&#7bpQ7sFo0$N%>bGKGy`Y`&<voxt$7'
        '8}nVwi-00000NkvXXu0mjf'
    ),
    'PNG_PALETTE': (
        'iBL{Q4GJ0x0000DNk~Le0000m0000W0s{a504cf?j{pDw3{Xr|Mcl|*6tp}jJkrP>C}?YAS^xk5C`m*?RCt_'
        'Y{LjF^z`zj3z`(%3z{G$Ah9-w)H3I_!1H<Y;;v9-O0B*bj?f%e=TmS$707*qoM6N<$f&'
    ),
    'PNG_LA': (
        'iBL{Q4GJ0x0000DNk~Le0000m0000W2m}BC0RG)GmjD0&J4r-ARCt_Y4EoPN5>O#cIRg`k>PZHp7K~ajYQd-'
        'lqZUvDuzV#^gExulhkg)^S}<zCs0E`Ij0g(=!{P$>avOLR00000NkvXXu0mjf'
    ),
    'WEBP': (
        'Qb|Ted;kCdS4BclR!}$~Z~y=RkOlyq0V*&6AOJoU27*B$2UnN`08uQ!7@{aIz&{W*LbwOupXz_|jzBKJe!zb'
        'K&-)4tMVEzlA<q9AfB^pc{^Vu*qmM)H{of{ko`hktdqT$tW51v-?-^x65_6e4e3yMa|MLMm@~svm0{{R3'
    ),
    'WEBP_LOSSLESS': (
        'Qb|TeNB{r;S4BclR!}%hI{*LxFE79c03RR_AWrmZ(I!YNm`DsJ|0^sZ0dYq*)<8?<KbX-?ftt3Bppq=fBl%|'
        'T9MS&?5Ef?EXv_=%'
    ),
    'WEBP_ALPHA': (
        'Qb|TeNB{r;S4BclR!}%hI{*LxFE79c03RR_AWrmZ(I!YNm`DsJ|0^sZ0dYq*)<8?<KbX-?ftt3Bppq=fBl%|'
        'T9MS&?5Ef?EXv_=%'
    ),
    'JPEG_TURNED': (
        '|JeWF01!$>Nk#wx0RR9200961|KR{4MR;ju002!*04e|g00;m90TKWM0000100sa600000|JwjV00IF40RaI'
        '50RaI50s;a81OoyB0s;jD1Oo&H1qKEN1qKEN2MGuU2MGrT1_%oX2?`1d3JL}Y3k(Yi3<(Mf3jf;xLjeK;0s;'
        'a81p@;G3I_%U3JMAe3JMAe3JMAe3JMAe3JMAe3JMAe3JMAe3JMAe3JMAe3JMAe3JMAe3JMAe3JU+g01*fPAO'
        'J7}0TBQK5di}c0sq7R9{>OW1pxs80RaI300000000010s{mE1_uZU3Jd?l0JRVR0s#X90t5pE1q1{D00Dgg0'
        's{a95d{(<F+m0sQDFxnaTGFvk)a49Lb1UWQqk}vGh%Xr2?`b$7#SKRCMPH<Dl|1VH#j*uLqtVJM@UIZQ&d$}'
        'S6EqEV`OD!XJ~0^b98lfcX)YvgM@{Khlq)al9QB`mY0~BnxdnmrKYE-sj9NGw6(UkxVgH*!^FkL$H>Xb($mz'
        '{*4NnC+Tr5k<mKk)=;`Y5^7Hid_V@Vt`v1fL9{~UZ0RaI40RaI40RR91000010s{mE1_uZU3Jd?l0JRYS0s#'
        'U91Oo&I1q1{D0Rndb0RjUN1O*{61`<J02Vrp&A~Jyp6he`qvB3!=Gg9ysVsg<679=#`CGi&+85$-hC@Cs6Ha'
        '9pqIzvQ7Mn_0VN>fx-R##YAT4Q8oW@l(=YIAgTc6WGrdV+(5g@%WSiHeewl$Dm3n3<ZQqok##r>Lo_va__cw'
        'zs&sy28W6#m2|T$;#5x)YaD4*xB0R<K*S$=jiF`^7Hid_V@Vt`v2Mh3<CiG0ucid06zfv9={(y)c~LZfIg6~'
        'n?L4UC;*@jo9pQh`e+IOC<EyV`Lq6I!hi|@`3}F^!}|az0H6=vivIwe^ZJk|0H6=Sdj9~T1Nm$y0H6=vivIw'
        'e^ZJk|0H6>5*#'
    ),
    'PNG_DEPTH': (
        'iBL{Q4GJ0x0000DNk~Le0000W0000G5C8xG00R5|#sB~SGD$>1RCt_YWIzMVFHrd`1o%wo29OFy4HygtF!C='
        'z6+n+?kq%V;jrUY`!KeX)!2kfez6RhqA&FxE0000<MNUMnLSTX'
    ),
}

FILES = {name: base64.b85decode(text) for name, text in _FILES.items()}
