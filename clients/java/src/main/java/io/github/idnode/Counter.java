package io.github.idnode;

/**
 * An identity in a listing.
 *
 * @param name its folded name
 * @param value the last value taken
 */
public record Counter(String name, long value) {}
