package io.github.idnode;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

// JSON, of which Java has no reader of its own. An object is a Map, an array a List, a number a Double.
final class Json {
  private static final int DEEPEST = 64;
  private static final String ESCAPES = "\"\\/bfnrt", ESCAPED = "\"\\/\b\f\n\r\t";
  private final String text;
  private int at;

  private Json(String text) { this.text = text; }

  // Throws an IllegalArgumentException if the text is no object.
  static Map<?, ?> object(String text) {
    var json = new Json(text);
    if (json.value(0) instanceof Map<?, ?> map && json.peek() == 0) return map;
    throw json.wrong();
  }

  static String text(Object value) {
    var into = new StringBuilder();
    write(value, into);
    return into.toString();
  }

  private static void write(Object value, StringBuilder into) {
    var between = "";
    if (value instanceof Map<?, ?> map) {
      into.append('{');
      for (var field : map.entrySet()) {
        write(field.getKey(), into.append(between));
        write(field.getValue(), into.append(':'));
        between = ",";
      }
      into.append('}');
    } else if (value instanceof List<?> list) {
      into.append('[');
      for (var one : list) {
        write(one, into.append(between));
        between = ",";
      }
      into.append(']');
    } else if (value instanceof String string) {
      into.append('"');
      for (var i = 0; i < string.length(); i++) write(string.charAt(i), into);
      into.append('"');
    } else {
      into.append(value);
    }
  }

  // Half of a pair of characters would be sent as a question mark, so these are escaped too.
  private static void write(char c, StringBuilder into) {
    if (c < ' ' || c == '"' || c == '\\' || Character.isSurrogate(c)) into.append(String.format("\\u%04x", (int) c));
    else into.append(c);
  }

  private IllegalArgumentException wrong() { return new IllegalArgumentException("not JSON at " + at); }

  // The next character that is no white space; 0 at the end.
  private char peek() {
    while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
    return at < text.length() ? text.charAt(at) : 0;
  }

  private boolean skip(char c) {
    if (peek() != c) return false;
    at++;
    return true;
  }

  private void need(char c) { if (!skip(c)) throw wrong(); }

  private Object value(int depth) {
    if (depth > DEEPEST) throw wrong();
    if (skip('{')) {
      var map = new HashMap<String, Object>();
      for (var more = !skip('}'); more; more = !skip('}')) {
        if (!map.isEmpty()) need(',');
        var name = string();
        need(':');
        map.put(name, value(depth + 1));
      }
      return map;
    }
    if (skip('[')) {
      var list = new ArrayList<Object>();
      for (var more = !skip(']'); more; more = !skip(']')) {
        if (!list.isEmpty()) need(',');
        list.add(value(depth + 1));
      }
      return list;
    }
    return peek() == '"' ? string() : word();
  }

  private Object word() {
    var start = at;
    while (at < text.length() && (Character.isLetterOrDigit(text.charAt(at)) || "+-.".indexOf(text.charAt(at)) >= 0)) at++;
    var word = text.substring(start, at);
    return switch (word) {
      case "null" -> null;
      case "true", "false" -> Boolean.valueOf(word);
      default -> Double.valueOf(word);
    };
  }

  private String string() {
    need('"');
    var string = new StringBuilder();
    for (var c = raw(); c != '"'; c = raw()) string.append(c == '\\' ? escaped(raw()) : c);
    return string.toString();
  }

  private char raw() {
    if (at == text.length()) throw wrong();
    return text.charAt(at++);
  }

  private char escaped(char c) {
    if (c == 'u') return (char) Integer.parseInt("" + raw() + raw() + raw() + raw(), 16);
    if (ESCAPES.indexOf(c) < 0) throw wrong();
    return ESCAPED.charAt(ESCAPES.indexOf(c));
  }
}
