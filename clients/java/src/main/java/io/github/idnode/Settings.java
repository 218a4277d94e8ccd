package io.github.idnode;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

// The endpoints and the configuration of a client as a program's surroundings name them: by the names of the command line's flags.
record Settings(List<String> endpoints, Map<String, String> named) {
  private static final Pattern URL = Pattern.compile("idnode\\+http://([^/?#]*)(/[^?#]*)?(\\?[^#]*)?(#.*)?", Pattern.DOTALL);
  private static final List<String> NAMES = List.of("tls", "tls-ca", "tls-cert", "tls-key", "tls-server-name", "cluster-id");

  static Settings fromEnv(Map<String, String> env) {
    UnaryOperator<String> variable = name -> "IDNODE_" + name.toUpperCase(Locale.ROOT).replace('-', '_');
    var parts = env.getOrDefault("IDNODE_HTTP_ENDPOINTS", "").split(",");
    var endpoints = Arrays.stream(parts).filter(address -> !address.isBlank()).collect(Collectors.joining(","));
    if (endpoints.isEmpty()) throw wrong("IDNODE_HTTP_ENDPOINTS is not set: it lists HTTP addresses of nodes, separated by commas");
    var named = new LinkedHashMap<String, String>();
    for (var name : List.of("database", "tls-ca", "tls-cert", "tls-key", "tls-server-name", "cluster-id")) {
      var value = env.getOrDefault(variable.apply(name), "");
      if (!value.isEmpty()) named.put(name, value);
    }
    return checked(endpoints, named, variable);
  }

  static Settings fromUrl(String url) {
    var parts = URL.matcher(url);
    if (url.startsWith("idnode://")) throw wrong("idnode:// names gRPC addresses: a URL of HTTP addresses begins with idnode+http://");
    if (!parts.matches()) throw wrong("the URL begins with idnode+http://" + (url.contains("://") ? ", not " + url.substring(0, url.indexOf("://")) : ""));
    if (parts.group(1).contains("@")) throw wrong("the URL has a user or a password, which idnode has not");
    if (parts.group(1).isEmpty()) throw wrong("the URL has no endpoints");
    if (parts.group(4) != null) throw wrong("the URL has a fragment, " + parts.group(4));
    var database = parts.group(2) == null ? "" : parts.group(2).substring(1);
    if (database.contains("/")) throw wrong("the path of the URL is one database, not " + database);
    var named = parameters(parts.group(3) == null ? "" : parts.group(3).substring(1));
    if (!database.isEmpty()) named.put("database", decoded(database, database));
    return checked(parts.group(1), named, name -> name);
  }

  private static Map<String, String> parameters(String query) {
    var all = new LinkedHashMap<String, String>();
    for (var one : query.isEmpty() ? new String[0] : query.split("&", -1)) {
      var pair = one.split("=", 2);
      var value = pair.length < 2 ? "" : decoded(pair[1], one);
      if (!NAMES.contains(pair[0])) throw wrong("the URL has an unknown parameter, " + pair[0]);
      if (value.isEmpty()) throw wrong("the URL has the parameter " + pair[0] + " without a value");
      if (all.put(pair[0], value) != null) throw wrong("the URL repeats the parameter " + pair[0]);
    }
    return all;
  }

  private static Settings checked(String endpoints, Map<String, String> named, UnaryOperator<String> label) {
    var all = Arrays.stream(endpoints.split(",", -1)).map(String::strip).toList();
    all.forEach(Node::parsed);
    boolean ca = named.containsKey("tls-ca"), certificate = named.containsKey("tls-cert"), key = named.containsKey("tls-key");
    if (!named.getOrDefault("tls", "true").equals("true")) throw wrong("the parameter tls is true or not there");
    if (certificate != key) throw wrong(label.apply("tls-cert") + " and " + label.apply("tls-key") + " come together");
    var inVain = !ca && !named.containsKey("tls") && (certificate || named.containsKey("tls-server-name"));
    if (inVain) throw wrong("there is no TLS without " + label.apply("tls-ca"));
    if (ca) named.remove("tls"); // It says the same.
    return new Settings(all, named);
  }

  private static IllegalArgumentException wrong(String what) { return new IllegalArgumentException(what); }

  private static String decoded(String text, String of) {
    try {
      return URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8); // A plus sign is one.
    } catch (IllegalArgumentException e) {
      throw wrong("not percent-encoded: " + of);
    }
  }

  // Reads the files.
  IdnodeConfig config() {
    var config = new IdnodeConfig().withDatabase(text("database")).withClusterId(text("cluster-id")).withTlsServerName(text("tls-server-name"));
    if (!named.containsKey("tls") && !named.containsKey("tls-ca")) return config;
    var files = new TlsFiles();
    if (named.containsKey("tls-ca")) files = files.withCa(Path.of(text("tls-ca")));
    if (named.containsKey("tls-cert")) files = files.withCert(Path.of(text("tls-cert"))).withKey(Path.of(text("tls-key")));
    return config.withTls(files);
  }

  private String text(String name) { return named.getOrDefault(name, ""); }
}
