package io.github.idnode.jpa;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks a field that {@link IdnodeListener} fills if it is null, empty or 0. A long, int, Long or Integer gets a number. A String gets
 * an id such as {@code users/65-A}, and the digits of a Snowflake id. The field is of an entity, and not of an embeddable.
 */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.FIELD)
public @interface IdnodeId {
  /**
   * The collection, whose HiLo ids are the source if no other is named.
   *
   * @return the HiLo tag; empty for the plural of the class that has the field, as {@code orders} of Order
   */
  String tag() default "";

  /**
   * The identity that is the source: a call of the cluster for each entity.
   *
   * @return its name; empty for another source
   */
  String identity() default "";

  /**
   * The pool whose Snowflake ids are the source. They do not fit an int.
   *
   * @return its name; empty for another source
   */
  String snowflake() default "";
}
