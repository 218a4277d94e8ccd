package io.github.idnode.jpa;

import io.github.idnode.IdnodeClient;
import java.lang.reflect.Field;
import java.util.Arrays;
import java.util.Objects;
import javax.persistence.PrePersist;

/**
 * Gives entities their ids before they are stored, with most of them at the cost of no call. An id that is set already stays.
 * It is safe for concurrent use.
 */
public class IdnodeListener {
  private static volatile IdnodeClient client; // A provider makes listeners by itself, so they have no other way to it.

  /** Made by the provider. */
  public IdnodeListener() {}

  /**
   * Names the client that all listeners ask, and which its owner closes.
   *
   * @param ids the client
   */
  public static void use(IdnodeClient ids) { client = Objects.requireNonNull(ids, "ids"); }

  /**
   * Fills the field of an entity that has {@link IdnodeId}. Throws an {@link IllegalStateException} if there is no such field,
   * or no client.
   *
   * @param entity is to be stored
   */
  @PrePersist
  public void fill(Object entity) {
    var field = idOf(entity.getClass());
    if (client == null) throw new IllegalStateException("IdnodeListener.use names the client first");
    try {
      field.setAccessible(true);
      if (field.get(entity) != null) return;
      var tag = field.getAnnotation(IdnodeId.class).tag();
      var next = client.hilo(tag.isEmpty() ? IdnodeClient.collectionOf(field.getDeclaringClass()) : tag).next();
      field.set(entity, field.getType() == Long.class ? (Object) next.value() : next.toString());
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    }
  }

  private static Field idOf(Class<?> type) {
    for (Class<?> at = type; at != null; at = at.getSuperclass()) {
      var found = Arrays.stream(at.getDeclaredFields()).filter(field -> field.isAnnotationPresent(IdnodeId.class)).findFirst();
      if (found.isPresent()) return found.get();
    }
    throw new IllegalStateException(type + " has no field with @IdnodeId");
  }
}
