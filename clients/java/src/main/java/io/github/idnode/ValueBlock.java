package io.github.idnode;

/**
 * A run of consecutive values.
 *
 * @param first the first one
 * @param last the last one, included
 */
public record ValueBlock(long first, long last) {}
