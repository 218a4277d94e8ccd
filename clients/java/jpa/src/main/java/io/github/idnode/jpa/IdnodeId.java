package io.github.idnode.jpa;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** Marks the id that {@link IdnodeListener} fills: a String gets a HiLo id such as {@code users/65-A}, a Long the number alone. */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.FIELD)
public @interface IdnodeId {
  /**
   * The collection.
   *
   * @return the HiLo tag; empty for the plural of the class that has the field, as {@code orders} of Order
   */
  String tag() default "";
}
