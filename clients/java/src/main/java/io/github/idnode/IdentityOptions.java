package io.github.idnode;

import static java.util.Objects.requireNonNull;

/** What {@link IdnodeClient#identity(String, IdentityOptions)} may be told. It does not change: each method returns a changed copy. */
public final class IdentityOptions {
  final String separator;
  final String database; // Null for the client's.

  /** The usual ones. */
  public IdentityOptions() { this("", null); }

  private IdentityOptions(String separator, String database) {
    this.separator = separator;
    this.database = database;
  }

  /**
   * These with what stands between the name and the value in ids: values whose ids are claimed are left out.
   *
   * @param to one character; empty means {@code /}
   * @return the changed copy
   */
  public IdentityOptions withSeparator(String to) { return new IdentityOptions(requireNonNull(to, "separator"), database); }

  /**
   * These with the database of the identity, unless a call names another one.
   *
   * @param to its name; empty means {@code default}
   * @return the changed copy
   */
  public IdentityOptions withDatabase(String to) { return new IdentityOptions(separator, requireNonNull(to, "database")); }
}
