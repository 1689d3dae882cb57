"""Text that looks like the records of a Swedish court or parish, composed from a seed."""

from __future__ import annotations

import random
import string
import typing as t

_WORDS: dict[str, tuple[str, ...]] = {
    name: tuple(words.split())
    for name, words in {
        "month": "januari februari mars april maj juni juli augusti september oktober november december",
        "day": "söndagen måndagen tisdagen onsdagen torsdagen fredagen lördagen",
        "man": "Anders Erik Per Lars Nils Olof Jöns Karl Johan Gustaf Måns Sven Håkan Åke Östen Zakarias Wilhelm",
        "woman": "Brita Karin Anna Margareta Kerstin Ingeborg Elin Sara Maria Cecilia Helena Ursula Äline Dorotea",
        "son": "Andersson Eriksson Persson Larsson Nilsson Olofsson Jönsson Karlsson Svensson Håkansson Månsson",
        "daughter": "Andersdotter Ersdotter Persdotter Larsdotter Nilsdotter Olofsdotter Jönsdotter Månsdotter",
        "place": "Åby Ängby Östra Västra Norra Södra Lund Berga Hult Näs Torp Vik Ås Ekeby Solna Täby Örby Ulvsta",
        "town": "Stockholm Uppsala Göteborg Örebro Åbo Kalmar Skara Västerås Linköping Gävle Umeå Falun Visby",
        "trade": "bonden drängen torparen länsman kyrkoherden klockaren mjölnaren smeden ryttaren soldaten skräddaren "
        "gästgivaren nämndemannen rådmannen borgaren fiskaren båtsmannen skomakaren",
        "kin": "änkan hustrun pigan dottern modern systern jungfrun svärmodern",
        "coin": "daler riksdaler öre skilling mark silvermynt kopparmynt",
        "goods": "råg korn havre salt sill järn koppar timmer tjära hampa lin ull vadmal smör humle kläde hö ved",
        "measure": "tunnor skäppor kannor spann lass famnar alnar skålpund lispund",
        "beast": "hästen kon oxen fåren kalven getterna svinen märren",
        "land": "skogen ängen åkern bäcken sjön vägen bron kvarnen smedjan stugan ladan hagen gärdet humlegården",
        "verb": "erkände nekade begärde lovade vittnade förklarade bekände klagade svarade påstod",
        "deed": "betala återlämna bygga dela köpa sälja bruka låna hägna röja",
        "adjective": "gamle unge stora lilla goda fattiga sjuka arma ärliga välborne beskedlige rika",
        "office": "rätten nämnden häradshövdingen domkapitlet sockenstämman borgmästaren kronan fogden",
        "paper": "brevet boken kontraktet protokollet intyget kvittot testamentet sigillet domen kartan",
        "adverb": "sedan därför likväl genast åter ofta aldrig ännu förut härefter välvilligt",
    }.items()
}
_SENTENCES = (
    "Den {date} hölls laga ting med menige man i {place}.",
    "{day} den {date} kom {trade} {he} inför {office}.",
    "{trade} {he} {verb}, att {kin} {she} hade tagit {beast}.",
    "{he} {verb} skulden {sum} {coin} och {sum} {coin}.",
    "Han fick {sum} {measure} {goods}, {sum} {measure} {goods} och {goods}.",
    "Samma dag föddes {he}, son av {trade} i {place}; dopvittne: {she}.",
    "{kin} {she} dog i {place} den {date}, {sum} år gammal.",
    "{office} dömde honom att {deed} {land} och {beast}.",
    "De {adjective} hade {adverb} inte fått {paper} från {town}.",
    "{he} ville {deed} {land} vid {place} för {sum} {coin}.",
    "Vittnet {she} {verb} under ed, att hon {adverb} sett {land}.",
    "Hemmanet {place}, {sum} mantal, brukas av {trade} {he}.",
    "Käranden {he} mot svaranden {he}: {paper} lästes upp.",
    "Lysning för {trade} {he} och {kin} {she}!",
    "{paper} av den {date} är {adverb} underskrivet i {town}.",
    "Resan till {town} kostade {sum} {coin}, och {goods} {sum} {coin}.",
    "Var är {paper}? {he} {verb} det ({adverb}).",
    "Till {office} i {town}: {adjective} {trade} {he} är {adverb} sjuk.",
    "Barnen: {man}, {woman}, {man} och {woman}, alla i {place}.",
    "Vid {land} låg {sum} {measure} {goods}, som {he} lovat {deed}.",
    "Arvet efter {she} skall {trade} {he} {adverb} {deed}.",
    "Uppsyn över {land} och {land} har {trade} {he} nr {sum}.",
)


def _number(rng: random.Random) -> str:
    return str(rng.randint(2, 20) if rng.random() < 0.6 else rng.randint(21, 999))


def _sentence(rng: random.Random) -> str:
    """One sentence, its first letter a capital."""
    compound: dict[str, t.Callable[[], str]] = {
        "date": lambda: f"{rng.randint(1, 31)} {rng.choice(_WORDS['month'])} {rng.randint(1600, 1899)}",
        "he": lambda: f"{rng.choice(_WORDS['man'])} {rng.choice(_WORDS['son'])}",
        "she": lambda: f"{rng.choice(_WORDS['woman'])} {rng.choice(_WORDS['daughter'])}",
        "sum": lambda: _number(rng),
    }
    parts = []
    for literal, name, _, _ in string.Formatter().parse(rng.choice(_SENTENCES)):
        parts.append(literal)
        if name:
            parts.append(compound[name]() if name in compound else rng.choice(_WORDS[name]))
    text = "".join(parts)
    return text[0].upper() + text[1:]


def words(rng: random.Random, shuffled: float = 0) -> t.Iterator[str]:
    """The words of endless prose, with their punctuation; ``shuffled`` is the share of sentences in disorder."""
    while True:
        sentence = _sentence(rng).split()
        if rng.random() < shuffled:
            rng.shuffle(sentence)
        yield from sentence
