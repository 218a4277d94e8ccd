package io.github.idnode;

import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

// The HiLo tags of classes.
final class CollectionNames {
  private CollectionNames() {}

  static String of(Class<?> type) {
    if (type.isAnonymousClass() || type.isHidden() || type.isArray() || type.isPrimitive() || Proxy.isProxyClass(type)) {
      throw new IllegalArgumentException(type + " has no name of its own: name the tag, as in hilo(\"users\")");
    }
    // A $ in the name is that of a class which Hibernate or another library has made below the program's own.
    return type.getSimpleName().contains("$") && type.getSuperclass() != null ? of(type.getSuperclass()) : of(type.getSimpleName());
  }

  static String of(String name) {
    var collection = plural(name);
    return collection.chars().filter(Character::isUpperCase).count() > 1 ? collection : collection.toLowerCase(Locale.ROOT);
  }

  // The words and rules are those of pluralize (MIT licence), by which the Go client names collections.
  private static final Map<String, String> IRREGULAR = Arrays.stream((
          "i:we me:us he:they she:they them:them myself:ourselves yourself:yourselves itself:themselves herself:themselves " +
          "himself:themselves themself:themselves is:are was:were has:have this:these that:those my:our its:their his:their " +
          "her:their echo:echoes dingo:dingoes volcano:volcanoes tornado:tornadoes torpedo:torpedoes genus:genera " +
          "viscus:viscera stigma:stigmata stoma:stomata dogma:dogmata lemma:lemmata schema:schemata anathema:anathemata " +
          "ox:oxen axe:axes die:dice yes:yeses foot:feet eave:eaves goose:geese tooth:teeth quiz:quizzes human:humans " +
          "proof:proofs carve:carves valve:valves looey:looies thief:thieves groove:grooves pickaxe:pickaxes " +
          "passerby:passersby canvas:canvases sms:sms")
      .split(" ")).collect(Collectors.toMap(pair -> pair.split(":")[0], pair -> pair.split(":")[1]));
  private static final Set<String> UNCOUNTABLE = Set.of((
          "adulthood advice agenda aid aircraft alcohol ammo analytics anime athletics audio bison blood bream buffalo butter " +
          "carp cash chassis chess clothing cod commerce cooperation corps debris diabetes digestion elk energy equipment " +
          "excretion expertise firmware flounder fun gallows garbage graffiti hardware headquarters health herpes highjinks " +
          "homework housework information jeans justice kudos labour literature machinery mackerel mail media mews moose music " +
          "mud manga news only personnel pike plankton pliers police pollution premises rain research rice salmon scissors " +
          "series sewage shambles shrimp software staff swine tennis traffic transportation trout tuna wealth welfare whiting " +
          "wildebeest wildlife you")
      .split(" "));
  // The first that matches decides.
  private static final List<Map.Entry<Pattern, String>> PLURALS = List.of(
      rule("(pok[e\u00e9]mon|[^aeiou]ese|deer|fish|measles|o[iu]s|pox|sheep)$", "$1"), rule("^thou$", "you"), rule("m[ae]n$", "men"),
      rule("(eaux)$", "$1"), rule("(child)(?:ren)?$", "$1ren"), rule("(pe)(?:rson|ople)$", "$1ople"),
      rule("\\b((?:tit)?m|l)(?:ice|ouse)$", "$1ice"), rule("(matr|cod|mur|sil|vert|ind|append)(?:ix|ex)$", "$1ices"),
      rule("(x|ch|ss|sh|zz)$", "$1es"), rule("([^ch][ieo][ln])ey$", "$1ies"), rule("([^aeiouy]|qu)y$", "$1ies"),
      rule("(?:(kni|wi|li)fe|(ar|l|ea|eo|oa|hoo)f)$", "$1$2ves"), rule("sis$", "ses"),
      rule("(apheli|hyperbat|periheli|asyndet|noumen|phenomen|criteri|organ|prolegomen|hedr|automat)(?:a|on)$", "$1a"),
      rule("(agend|addend|millenni|dat|extrem|bacteri|desiderat|strat|candelabr|errat|ov|symposi|curricul|automat|quor)(?:a|um)$", "$1a"),
      rule("(her|at|gr)o$", "$1oes"), rule("(seraph|cherub)(?:im)?$", "$1im"), rule("(alumn|alg|vertebr)(?:a|ae)$", "$1ae"),
      rule("(alumn|syllab|vir|radi|nucle|fung|cact|stimul|termin|bacill|foc|uter|loc|strat)(?:us|i)$", "$1i"),
      rule("([^l]ias|[aeiou]las|[ejzr]as|[iu]am)$", "$1"), rule("(e[mn]u)s?$", "$1s"), rule("(alias|[^aou]us|t[lm]as|gas|ris)$", "$1es"),
      rule("(ax|test)is$", "$1es"), rule("([^\\x00-\\x7f])$", "$1"), rule("s?$", "s"));

  private static Map.Entry<Pattern, String> rule(String pattern, String plural) {
    return Map.entry(Pattern.compile(pattern, Pattern.CASE_INSENSITIVE | Pattern.UNICODE_CASE), plural);
  }

  private static String plural(String word) {
    var token = word.toLowerCase(Locale.ROOT);
    if (IRREGULAR.containsValue(token)) return like(word, token);
    if (UNCOUNTABLE.contains(token)) return word;
    if (IRREGULAR.containsKey(token)) return like(word, IRREGULAR.get(token));
    for (var rule : PLURALS) {
      var match = rule.getKey().matcher(word);
      if (!match.find()) continue;
      var whole = new StringBuilder();
      match.appendReplacement(whole, rule.getValue());
      var like = match.group().isEmpty() ? word.substring(Math.max(word.length() - 1, 0)) : match.group();
      return word.substring(0, match.start()) + like(like, whole.substring(match.start()));
    }
    return word;
  }

  // The token in the case of word.
  private static String like(String word, String token) {
    String lower = token.toLowerCase(Locale.ROOT), upper = token.toUpperCase(Locale.ROOT);
    if (word.equals(token)) return token;
    if (word.equals(word.toLowerCase(Locale.ROOT))) return lower;
    if (word.equals(word.toUpperCase(Locale.ROOT))) return upper;
    return Character.isUpperCase(word.charAt(0)) ? upper.charAt(0) + lower.substring(1) : lower;
  }
}
