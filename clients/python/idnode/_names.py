"""Names of collections, as RavenDB's clients and the Go client make them."""

from __future__ import annotations

import functools
import re

# The words and rules are those of pluralize (MIT licence), by which the Go client names collections.
_IRREGULAR = dict(pair.split(":") for pair in (
    "i:we me:us he:they she:they them:them myself:ourselves yourself:yourselves itself:themselves herself:themselves "
    "himself:themselves themself:themselves is:are was:were has:have this:these that:those my:our its:their his:their "
    "her:their echo:echoes dingo:dingoes volcano:volcanoes tornado:tornadoes torpedo:torpedoes genus:genera "
    "viscus:viscera stigma:stigmata stoma:stomata dogma:dogmata lemma:lemmata schema:schemata anathema:anathemata "
    "ox:oxen axe:axes die:dice yes:yeses foot:feet eave:eaves goose:geese tooth:teeth quiz:quizzes human:humans "
    "proof:proofs carve:carves valve:valves looey:looies thief:thieves groove:grooves pickaxe:pickaxes "
    "passerby:passersby canvas:canvases sms:sms"
).split())
_UNCOUNTABLE = frozenset((
    "adulthood advice agenda aid aircraft alcohol ammo analytics anime athletics audio bison blood bream buffalo butter "
    "carp cash chassis chess clothing cod commerce cooperation corps debris diabetes digestion elk energy equipment "
    "excretion expertise firmware flounder fun gallows garbage graffiti hardware headquarters health herpes highjinks "
    "homework housework information jeans justice kudos labour literature machinery mackerel mail media mews moose music "
    "mud manga news only personnel pike plankton pliers police pollution premises rain research rice salmon scissors "
    "series sewage shambles shrimp software staff swine tennis traffic transportation trout tuna wealth welfare whiting "
    "wildebeest wildlife you"
).split())
_PLURALS = [(re.compile(rule, re.IGNORECASE), plural) for rule, plural in (  # The first that matches decides.
    (r"(pok[eé]mon|[^aeiou]ese|deer|fish|measles|o[iu]s|pox|sheep)$", r"\1"), (r"^thou$", "you"), (r"m[ae]n$", "men"),
    (r"(eaux)$", r"\1"), (r"(child)(?:ren)?$", r"\1ren"), (r"(pe)(?:rson|ople)$", r"\1ople"),
    (r"\b((?:tit)?m|l)(?:ice|ouse)$", r"\1ice"), (r"(matr|cod|mur|sil|vert|ind|append)(?:ix|ex)$", r"\1ices"),
    (r"(x|ch|ss|sh|zz)$", r"\1es"), (r"([^ch][ieo][ln])ey$", r"\1ies"), (r"([^aeiouy]|qu)y$", r"\1ies"),
    (r"(?:(kni|wi|li)fe|(ar|l|ea|eo|oa|hoo)f)$", r"\1\2ves"), (r"sis$", "ses"),
    (r"(apheli|hyperbat|periheli|asyndet|noumen|phenomen|criteri|organ|prolegomen|hedr|automat)(?:a|on)$", r"\1a"),
    (r"(agend|addend|millenni|dat|extrem|bacteri|desiderat|strat|candelabr|errat|ov|symposi|curricul|automat|quor)"
     r"(?:a|um)$", r"\1a"),
    (r"(her|at|gr)o$", r"\1oes"), (r"(seraph|cherub)(?:im)?$", r"\1im"), (r"(alumn|alg|vertebr)(?:a|ae)$", r"\1ae"),
    (r"(alumn|syllab|vir|radi|nucle|fung|cact|stimul|termin|bacill|foc|uter|loc|strat)(?:us|i)$", r"\1i"),
    (r"([^l]ias|[aeiou]las|[ejzr]as|[iu]am)$", r"\1"), (r"(e[mn]u)s?$", r"\1s"),
    (r"(alias|[^aou]us|t[lm]as|gas|ris)$", r"\1es"), (r"(ax|test)is$", r"\1es"), (r"([^\x00-\x7f])$", r"\1"),
    (r"s?$", "s"),
)]


@functools.lru_cache(maxsize=1024)
def tag_of(name: str) -> str:
    """The HiLo tag of a class with this name: ``companies`` for ``Company``, ``OrderLines`` for ``OrderLine``."""
    collection = _plural(name)
    return collection if sum(c.isupper() for c in collection) > 1 else collection.lower()


def _plural(word: str) -> str:
    token = word.lower()
    if token in _IRREGULAR.values() or token in _UNCOUNTABLE:
        return word if token in _UNCOUNTABLE else _like(word, token)
    if token in _IRREGULAR:
        return _like(word, _IRREGULAR[token])
    rule, plural = next((rule, plural) for rule, plural in _PLURALS if rule.search(word))
    return rule.sub(lambda m: _like(m.group() or word[-1:], m.expand(plural)), word, count=1)


def _like(word: str, token: str) -> str:
    """token in the case of word."""
    if word == token or word == word.lower():
        return token if word == token else token.lower()
    return token.upper() if word == word.upper() else token.capitalize() if word[:1].isupper() else token.lower()
