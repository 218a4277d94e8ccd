// Names the HiLo tag of a class, as RavenDB's clients do.

"use strict";

// The words and rules are those of pluralize (MIT licence), by which the Go client names tags.
const IRREGULAR = new Map((
  "i:we me:us he:they she:they them:them myself:ourselves yourself:yourselves itself:themselves herself:themselves " +
  "himself:themselves themself:themselves is:are was:were has:have this:these that:those my:our its:their his:their " +
  "her:their echo:echoes dingo:dingoes volcano:volcanoes tornado:tornadoes torpedo:torpedoes genus:genera " +
  "viscus:viscera stigma:stigmata stoma:stomata dogma:dogmata lemma:lemmata schema:schemata anathema:anathemata " +
  "ox:oxen axe:axes die:dice yes:yeses foot:feet eave:eaves goose:geese tooth:teeth quiz:quizzes human:humans " +
  "proof:proofs carve:carves valve:valves looey:looies thief:thieves groove:grooves pickaxe:pickaxes " +
  "passerby:passersby canvas:canvases sms:sms"
).split(" ").map((pair) => pair.split(":")));
const PLURAL = new Set(IRREGULAR.values());
const UNCOUNTABLE = new Set((
  "adulthood advice agenda aid aircraft alcohol ammo analytics anime athletics audio bison blood bream buffalo butter " +
  "carp cash chassis chess clothing cod commerce cooperation corps debris diabetes digestion elk energy equipment " +
  "excretion expertise firmware flounder fun gallows garbage graffiti hardware headquarters health herpes highjinks " +
  "homework housework information jeans justice kudos labour literature machinery mackerel mail media mews moose music " +
  "mud manga news only personnel pike plankton pliers police pollution premises rain research rice salmon scissors " +
  "series sewage shambles shrimp software staff swine tennis traffic transportation trout tuna wealth welfare whiting " +
  "wildebeest wildlife you"
).split(" "));
const PLURALS = [ // The first that matches decides.
  [/(pok[eé]mon|[^aeiou]ese|deer|fish|measles|o[iu]s|pox|sheep)$/i, "$1"], [/^thou$/i, "you"], [/m[ae]n$/i, "men"],
  [/(eaux)$/i, "$1"], [/(child)(?:ren)?$/i, "$1ren"], [/(pe)(?:rson|ople)$/i, "$1ople"],
  [/\b((?:tit)?m|l)(?:ice|ouse)$/i, "$1ice"], [/(matr|cod|mur|sil|vert|ind|append)(?:ix|ex)$/i, "$1ices"],
  [/(x|ch|ss|sh|zz)$/i, "$1es"], [/([^ch][ieo][ln])ey$/i, "$1ies"], [/([^aeiouy]|qu)y$/i, "$1ies"],
  [/(?:(kni|wi|li)fe|(ar|l|ea|eo|oa|hoo)f)$/i, "$1$2ves"], [/sis$/i, "ses"],
  [/(apheli|hyperbat|periheli|asyndet|noumen|phenomen|criteri|organ|prolegomen|hedr|automat)(?:a|on)$/i, "$1a"],
  [/(agend|addend|millenni|dat|extrem|bacteri|desiderat|strat|candelabr|errat|ov|symposi|curricul|automat|quor)(?:a|um)$/i, "$1a"],
  [/(her|at|gr)o$/i, "$1oes"], [/(seraph|cherub)(?:im)?$/i, "$1im"], [/(alumn|alg|vertebr)(?:a|ae)$/i, "$1ae"],
  [/(alumn|syllab|vir|radi|nucle|fung|cact|stimul|termin|bacill|foc|uter|loc|strat)(?:us|i)$/i, "$1i"],
  [/([^l]ias|[aeiou]las|[ejzr]as|[iu]am)$/i, "$1"], [/(e[mn]u)s?$/i, "$1s"],
  [/(alias|[^aou]us|t[lm]as|gas|ris)$/i, "$1es"], [/(ax|test)is$/i, "$1es"], [/([^\x00-\x7f])$/i, "$1"], [/s?$/i, "s"],
];

function tagOf(name) {
  const tag = plural(name);
  return tag.match(/\p{Lu}/gu)?.length > 1 ? tag : tag.toLowerCase();
}

function plural(word) {
  const token = word.toLowerCase();
  if (PLURAL.has(token)) return like(word, token);
  if (UNCOUNTABLE.has(token)) return word;
  if (IRREGULAR.has(token)) return like(word, IRREGULAR.get(token));
  const [rule, replacement] = PLURALS.find(([rule]) => rule.test(word));
  const found = word.match(rule);
  const ending = replacement.replace(/\$(\d)/g, (_, group) => found[group] ?? "");
  return word.slice(0, found.index) + like(found[0] || word.slice(-1), ending);
}

// like returns token in the case of word.
function like(word, token) {
  if (word === token) return token;
  if (word === word.toLowerCase()) return token.toLowerCase();
  if (word === word.toUpperCase()) return token.toUpperCase();
  const [first, rest] = [word[0], token.slice(1).toLowerCase()];
  return (first === first.toUpperCase() ? token[0].toUpperCase() : token[0].toLowerCase()) + rest;
}

module.exports = { tagOf };
