"""Stores rows in each way that Django has while rows of other origin have the next ids. Prints what came of it."""

import sys
from dataclasses import replace

import django
import idnode
import idnode.aio
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}, DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"],
)
django.setup()
from django.contrib import admin  # noqa: E402 - once the settings are there
from django.core import serializers  # noqa: E402
from django.db import DatabaseError, IntegrityError, connection, migrations, models, transaction  # noqa: E402
from django.db.migrations.writer import MigrationWriter  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402
from idnode.django import IdField, NumberField  # noqa: E402

client = idnode.Client(sys.argv[1:])
users, orders, flakes, wrong = client.hilo("users"), client.identity("orders"), client.snowflake("flakes"), 7
of_asyncio = idnode.aio.Client(sys.argv[1:]).hilo("users")


class Base(models.Model):
    name = models.CharField(max_length=20, blank=True)

    class Meta:
        app_label = "shop"
        abstract = True


class User(Base):
    id = IdField("__main__.users", primary_key=True)


class Customer(User):
    class Meta:
        app_label = "shop"


class Order(Base):
    number = NumberField("__main__.orders")
    user = models.ForeignKey(User, models.CASCADE, null=True)


class Draft(Base):
    number = NumberField("__main__.orders", null=True)

    class Meta:
        app_label = "shop"


class Bill(Base):
    number = NumberField("__main__.orders", unique=False)

    class Meta:
        app_label = "shop"
        constraints = [models.UniqueConstraint(fields=["name", "number"], name="once")]


class Flake(Base):
    id = NumberField("__main__.flakes", primary_key=True)


conflicting = [User(name="new")]


def form(name):
    made = admin.ModelAdmin(User, admin.site).get_form(None, fields=("name",))({"name": name})
    made.save()


def admins(name):
    admin.ModelAdmin(User, admin.site).save_model(None, User(name=name), None, False)


def copied(name):
    user = User.objects.filter(name="other").first()
    user.pk, user.name = None, name
    user.save()


def copied_as_told(name):
    user = User.objects.filter(name="other").first()
    user.pk, user.name, user._state.adding = None, name, True
    user.save()


def again(name):
    """Stores an object again whose id was taken."""
    user = User(name=name)
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError:
        pass
    user.save()


def fixture(name):
    serializers.base.DeserializedObject(User(name=name)).save()


def nested(name):
    user = User(name=name)
    try:
        with transaction.atomic():
            user.save()
            raise ValueError
    except ValueError:
        user.save()


WAYS = {
    "save": lambda name: User(name=name).save(),
    "save with an empty text": lambda name: User(id="", name=name).save(),
    "save of a child": lambda name: Customer(name=name).save(),
    "create": lambda name: User.objects.create(name=name),
    "get_or_create": lambda name: User.objects.get_or_create(name=name),
    "update_or_create": lambda name: User.objects.update_or_create(name=name, defaults={"name": name}),
    "bulk_create": lambda name: User.objects.bulk_create([User(name=name)]),
    "form of the admin": form,
    "admin": admins,
    "copy": copied,
    "copy as told": copied_as_told,
    "fixture": fixture,
    "nested": nested,
    "again": again,
}

with client, connection.schema_editor() as schema:
    for model in User, Customer, Order, Draft, Bill, Flake:
        schema.create_model(model)
    for way, store in WAYS.items():
        outcome = []
        for taken in True, False:
            number = users.next()
            following = str(replace(number, value=number.value + 1))
            with connection.cursor() as cursor:
                cursor.execute("DELETE FROM shop_order")
                cursor.execute("DELETE FROM shop_customer")
                cursor.execute("DELETE FROM shop_user")
                cursor.execute("INSERT INTO shop_user (id, name) VALUES ('other', 'other')")
                if taken:
                    cursor.execute("INSERT INTO shop_user (id, name) VALUES (%s, 'imported')", [following])
            try:
                with transaction.atomic(), CaptureQueriesContext(connection) as queries:
                    store("new")
                ended = "right" if User.objects.filter(id=following, name="new").exists() else "wrong"
            except IntegrityError:
                ended = "refused"
            updates = sum(q["sql"].startswith("UPDATE") for q in queries.captured_queries)
            kept = not taken or User.objects.filter(id=following, name="imported").exists()
            outcome += [ended, "" if kept else "and changed", f"with {updates} updates" if updates else ""]
        print(f"{way}: {' '.join(filter(None, outcome))}")

    made = Order.objects.bulk_create([Order() for _ in range(500)])
    print("bulk_create of 500:", len({order.number for order in made}), all(order.number for order in made))
    user = User.objects.create(name="parent")
    user.order_set.bulk_create([Order(user=user) for _ in range(500)])
    print("of a parent:", len(set(Order.objects.values_list("number", flat=True))))
    update_one = idnode.django._fills(lambda *_, **__: print("upserts of another column: passed"))  # Django 4.1 has such a bulk_create.
    update_one(Bill.objects.all(), [Bill()], update_conflicts=True, unique_fields=["name"])
    draft, bare, bill = Draft.objects.create(name="draft"), Draft.objects.create(name="bare"), Bill()
    Draft.objects.filter(pk=bare.pk).update(number=None)
    order = Order.objects.first()
    order.pk, order._state.adding = None, True
    try:
        with transaction.atomic():
            order.save()
    except IntegrityError:
        print("a copy with its number: refused")
    for what, refused in {
        "a number that becomes None": lambda: Order(pk=Order.objects.first().pk, number=None).save(force_update=True),
        "bulk_update of what has no id": lambda: User.objects.bulk_update([User(name="new")], ["name"]),
        "save with force_update": lambda: User(name="new").save(force_update=True),
        "bulk_create that updates": lambda: User.objects.bulk_create(conflicting, update_conflicts=True),
        "the same again": lambda: User.objects.bulk_create(conflicting, update_conflicts=True),
        "of one of two columns": lambda: Bill.objects.bulk_create([Bill()], update_conflicts=True, unique_fields=["name", "number"]),
        "of what is not said": lambda: Bill.objects.bulk_create([Bill()], None, False, True, ["name"]),
        "one object twice": lambda: Bill.objects.bulk_create([bill, bill]),
        "a number that may be None, and becomes it": lambda: Draft(pk=draft.pk).save(),
        "the same by position": lambda: User.objects.bulk_create(conflicting, None, False, True, ["name"], ["id"]),
    }.items():
        try:
            with transaction.atomic():
                refused()
            print(what, "passed")
        except (ValueError, TypeError, DatabaseError) as error:
            print(f"{what}: {type(error).__name__}")
    serializers.base.DeserializedObject(Order(name="fixture")).save()
    print("a number of a fixture:", bool(Order.objects.get(name="fixture").number))
    loaded = []
    for kind, pk in 2 * [(Order, 77), (Draft, 77), (Draft, bare.pk)]:
        serializers.base.DeserializedObject(kind(pk=pk, name="again")).save()
        loaded.append(kind.objects.get(pk=pk).number)
    print("fixtures with keys:", loaded[:3] == loaded[3:], list(map(bool, loaded)))
    draft = Draft.objects.defer("number").get(pk=bare.pk)
    draft.save()
    Draft.objects.get(pk=bare.pk).save()
    print("what has no number:", Draft.objects.get(pk=bare.pk).number)
    print("as a default:", *[error.id for error in NumberField("__main__.orders", default=0, name="x").check()])
    Customer(user_ptr=user).save_base(raw=True)
    print("a child of a stored parent:", Customer.objects.get(user_ptr=user).name)
    flake = Flake.objects.create(name="a")
    print("snowflake:", flakes.parse(flake.id).worker, Flake.objects.get().id == flake.id)
    for source in "users", "orders", "flakes", "missing", "wrong", "of_asyncio":
        print(source, *[error.id for error in NumberField(f"__main__.{source}", name="x").check() if error.id.startswith("idnode")])
    field = Order._meta.get_field("number")
    print(MigrationWriter.serialize(field)[0], field.clone().deconstruct()[1:] == field.deconstruct()[1:])
