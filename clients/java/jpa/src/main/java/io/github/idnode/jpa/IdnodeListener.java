package io.github.idnode.jpa;

import io.github.idnode.IdnodeClient;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.persistence.Embeddable;
import javax.persistence.EntityManagerFactory;
import javax.persistence.PrePersist;
import javax.persistence.metamodel.EntityType;

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
  // A provider makes listeners by itself, so they have no other way to a client. UNITS has the factories that were named.
  private static volatile IdnodeClient rest;
  private static final Queue<Unit> UNITS = new ConcurrentLinkedQueue<>();

  private record Unit(EntityManagerFactory entities, IdnodeClient ids, Set<Class<?>> types) {
    boolean has(Class<?> type) { return types.contains(type) && entities.isOpen(); }
  }

  /** Made by the provider. */
  public IdnodeListener() {}

  /**
   * Names the client of all entities that have no other, and which its owner closes.
   *
   * @param ids the client
   */
  public static void use(IdnodeClient ids) { rest = Objects.requireNonNull(ids, "ids"); }

  /**
   * Names the client of a factory's entities, and throws an {@link IllegalStateException}, after which all is as before, if one has a
   * field with {@link IdnodeId} that cannot be filled, or is of another open factory too, which has another client.
   *
   * @param ids the client
   * @param entities has them
   */
  public static synchronized void use(IdnodeClient ids, EntityManagerFactory entities) {
    Objects.requireNonNull(ids, "ids");
    UNITS.removeIf(had -> !had.entities.isOpen());
    var types = entities.getMetamodel().getEntities().stream().<Class<?>>map(EntityType::getJavaType).collect(Collectors.toSet());
    types.forEach(FIELDS::get);
    entities.getMetamodel().getEmbeddables().forEach(part -> checkPart(part.getJavaType()));
    var others = UNITS.stream().filter(had -> had.ids != ids && had.entities != entities).toList();
    types.stream().filter(type -> others.stream().anyMatch(had -> had.has(type))).findFirst().ifPresent(type -> {
      throw new IllegalStateException(type + " is of another factory, which has another client");
    });
    var unit = new Unit(entities, ids, types);
    UNITS.add(unit);
    UNITS.removeIf(had -> had != unit && had.entities == entities);
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
    var client = clientOf(entity.getClass());
    if (client == null) throw new IllegalStateException("IdnodeListener.use names the client first");
    try {
      for (var field : fields) if (isEmpty(field.get(entity))) field.set(entity, next(client, field));
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    }
  }

  // Null if there is none. What a provider has made below an entity's class is of it.
  private static IdnodeClient clientOf(Class<?> type) {
    return classes(type).flatMap(at -> UNITS.stream().filter(unit -> unit.has(at))).findFirst().map(Unit::ids).orElse(rest);
  }

  private static Stream<Class<?>> classes(Class<?> type) { return Stream.iterate(type, Objects::nonNull, Class::getSuperclass); }

  private static boolean isEmpty(Object id) { return id == null || id.equals("") || id instanceof Number number && number.longValue() == 0; }

  private static Object next(IdnodeClient client, Field field) {
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
    var all = classes(type).flatMap(at -> Arrays.stream(at.getDeclaredFields())).toList();
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
