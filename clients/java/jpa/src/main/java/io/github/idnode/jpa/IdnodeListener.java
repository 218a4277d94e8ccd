package io.github.idnode.jpa;

import io.github.idnode.IdnodeClient;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Stream;
import javax.persistence.Embeddable;
import javax.persistence.EntityManagerFactory;
import javax.persistence.PrePersist;

/**
 * Gives entities their ids before they are stored, with most of them at the cost of no call. An id that is set already stays.
 * It is safe for concurrent use.
 */
public class IdnodeListener {
  private static final Set<Class<?>> INTS = Set.of(int.class, Integer.class), NUMBERS = Set.of(long.class, Long.class, int.class, Integer.class);
  private static final ClassValue<List<Field>> FIELDS = new ClassValue<>() {
    @Override
    protected List<Field> computeValue(Class<?> type) { return fieldsOf(type); }
  };
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
   * The same, and throws an {@link IllegalStateException} if an entity has a field with {@link IdnodeId} that cannot be filled. Else
   * the first entity of the class that is stored throws it.
   *
   * @param ids the client
   * @param entities has them
   */
  public static void use(IdnodeClient ids, EntityManagerFactory entities) {
    use(ids);
    entities.getMetamodel().getEntities().forEach(entity -> FIELDS.get(entity.getJavaType()));
    entities.getMetamodel().getEmbeddables().forEach(part -> checkPart(part.getJavaType()));
  }

  /**
   * Fills the fields of an entity that have {@link IdnodeId}. Throws an {@link IllegalStateException} if there is none, or no
   * client, or one cannot hold its number.
   *
   * @param entity is to be stored
   */
  @PrePersist
  public void fill(Object entity) {
    var fields = FIELDS.get(entity.getClass());
    if (fields.isEmpty()) throw new IllegalStateException(entity.getClass() + " has no field with @IdnodeId");
    if (client == null) throw new IllegalStateException("IdnodeListener.use names the client first");
    try {
      for (var field : fields) if (isEmpty(field.get(entity))) field.set(entity, next(field));
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    }
  }

  private static boolean isEmpty(Object id) { return id == null || id.equals("") || id instanceof Number number && number.longValue() == 0; }

  private static Object next(Field field) {
    var source = field.getAnnotation(IdnodeId.class);
    var text = field.getType() == String.class;
    if (text && !source.identity().isEmpty()) return client.next(source.identity() + "|");
    if (!source.identity().isEmpty()) return number(field, client.identity(source.identity()).next());
    if (!source.snowflake().isEmpty()) return number(field, client.snowflake(source.snowflake()).nextId());
    var next = client.hilo(source.tag().isEmpty() ? IdnodeClient.tagOf(field.getDeclaringClass()) : source.tag()).next();
    return text ? next.toString() : number(field, next.value());
  }

  private static Object number(Field field, long number) {
    if (field.getType() == String.class) return Long.toString(number);
    if (!INTS.contains(field.getType())) return number;
    if (number > Integer.MAX_VALUE) throw new IllegalStateException(number + " does not fit " + field);
    return (int) number;
  }

  private static List<Field> fieldsOf(Class<?> type) {
    var types = Stream.<Class<?>>iterate(type, Objects::nonNull, Class::getSuperclass);
    var all = types.flatMap(at -> Arrays.stream(at.getDeclaredFields())).toList();
    all.stream().map(Field::getType).filter(part -> part.isAnnotationPresent(Embeddable.class)).forEach(IdnodeListener::checkPart);
    var filled = all.stream().filter(field -> field.isAnnotationPresent(IdnodeId.class)).toList();
    filled.forEach(IdnodeListener::check);
    return filled;
  }

  private static void checkPart(Class<?> embeddable) {
    if (FIELDS.get(embeddable).isEmpty()) return;
    throw new IllegalStateException("@IdnodeId fills fields of entities, not of the embeddable " + embeddable);
  }

  private static void check(Field field) {
    var source = field.getAnnotation(IdnodeId.class);
    var named = Stream.of(source.tag(), source.identity(), source.snowflake()).filter(name -> !name.isEmpty()).count();
    var holds = field.getType() == String.class || NUMBERS.contains(field.getType());
    if (!holds || Modifier.isStatic(field.getModifiers()) || Modifier.isFinal(field.getModifiers())) {
      throw new IllegalStateException("@IdnodeId fills a String, long, int, Long or Integer that is neither static nor final, not " + field);
    }
    if (named > 1) throw new IllegalStateException("@IdnodeId has one of tag, identity and snowflake, at " + field);
    if (!source.snowflake().isEmpty() && INTS.contains(field.getType())) throw new IllegalStateException("a Snowflake id does not fit " + field);
    field.setAccessible(true);
  }
}
