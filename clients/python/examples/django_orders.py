"""Users with HiLo ids and numbered orders, in SQLite: ``python3 django_orders.py 127.0.0.1:7402``. One file in place of a project."""

import sys

import django
import idnode
from django.conf import settings
from django.db import connection, models

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}, DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from idnode.django import IdField, NumberField  # noqa: E402 - once the settings are there

client = idnode.Client(sys.argv[1:])
users = client.hilo("users")


def orders():
    return client.identity("orders")


class User(models.Model):
    id = IdField("__main__.users", primary_key=True)
    name = models.CharField(max_length=100)

    class Meta:
        app_label = "shop"


class Order(models.Model):
    number = NumberField("__main__.orders", unique=True)
    user = models.ForeignKey(User, models.CASCADE)

    class Meta:
        app_label = "shop"


with client, connection.schema_editor() as schema:
    schema.create_model(User)
    schema.create_model(Order)
    user = User.objects.create(name="Ayende")
    User.objects.bulk_create([User(name="Fitzchak"), User(name="Michael")])
    Order.objects.create(user=user)
    Order.objects.bulk_create([Order(user=user), Order(user=user, number=1000)])
    user.name = "Oren"
    user.save()
    print(*User.objects.order_by("id").values_list("id", "name"))
    print(*Order.objects.order_by("number").values_list("number", flat=True))
