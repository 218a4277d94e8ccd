package io.github.idnode;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

// The label of a client that was given none: who holds a HiLo range, for people.
final class Label {
  private static final int LONGEST = 64;

  private Label() {}

  static String ofProgram() {
    var command = System.getProperty("sun.java.command", "").split(" ")[0]; // The main class or the jar, and arguments.
    return of(host(), command.substring(command.replace('\\', '/').lastIndexOf('/') + 1));
  }

  // Both may have any characters and any length. The cluster takes no invisible ones, and some calls none that is empty.
  static String of(String host, String program) {
    var label = (host + " " + program).replaceAll("[^ -~]", "").strip();
    return label.isEmpty() ? "java" : label.substring(0, Math.min(label.length(), LONGEST));
  }

  // InetAddress.getLocalHost would ask the network.
  private static String host() {
    try {
      return Files.readString(Path.of("/proc/sys/kernel/hostname"));
    } catch (IOException | RuntimeException e) { // It is not Linux, or is not to be read.
      return System.getenv().getOrDefault("COMPUTERNAME", System.getenv().getOrDefault("HOSTNAME", ""));
    }
  }
}
