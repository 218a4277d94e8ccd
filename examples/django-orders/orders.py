"""A web service that takes orders, each of which gets a number of its own from idnode. README.md shows it.

One file in the place of a project: settings, models, views and the server.
"""

import json
import os
import re
import signal
import sys

import django
import idnode
from django.conf import settings
from django.core.servers.basehttp import run
from django.core.wsgi import get_wsgi_application
from django.db import connection, models
from django.http import JsonResponse
from django.urls import path

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ.get("DATABASE", "orders.db"), "OPTIONS": {"timeout": 30}}},
    ROOT_URLCONF=__name__, ALLOWED_HOSTS=["127.0.0.1"], LOGGING_CONFIG=None, DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from idnode.django import IdField  # noqa: E402 - once the settings are there

NOT_NOW = idnode.DeadlineError, idnode.NoEndpointError, idnode.NoQuorumError, idnode.OutcomeUnknownError, idnode.OverloadedError
REFUSED = idnode.InvalidError, idnode.RequestIdReusedError, idnode.RequestIdExpiredError
KEY = re.compile("[!-~]{1,48}")  # A request id has at most 64 bytes.

client = idnode.Client.from_env()
order_ids = client.hilo("orders")


class Order(models.Model):
    id = IdField(f"{__name__}.order_ids", primary_key=True)
    key = models.CharField(max_length=64, unique=True)
    customer = models.CharField(max_length=100)
    number = models.BigIntegerField(null=True, unique=True)

    class Meta:
        app_label = "orders"

    def told(self):
        return {"id": self.id, "key": self.key, "customer": self.customer, "number": str(self.number or "")}

    def take_number(self):
        """Takes the order's number and stores it. The service's name and the order's key are the request id of the call: whoever repeats it,
        this caller, another one at the same time or the service after a crash, gets the same number."""
        self.number = client.identity("orders").next(request_id=f"django-orders-{self.key}")
        self.save(update_fields=["number"])


def orders(request):
    if request.method != "POST":
        return JsonResponse([order.told() for order in Order.objects.all()], safe=False)
    key, customer = request.headers.get("Idempotency-Key", ""), json.loads(request.body).get("customer")
    if not KEY.fullmatch(key) or not isinstance(customer, str):
        return JsonResponse({"error": "an order has a customer, and a header Idempotency-Key of 1 to 48 characters of ASCII"}, status=400)
    try:
        order, _ = Order.objects.get_or_create(key=key, defaults={"customer": customer})
        if not order.number:
            order.take_number()
    except NOT_NOW as error:  # The same call later gives the order its number.
        return JsonResponse({"error": str(error)}, status=503)
    return JsonResponse(order.told())


urlpatterns = [path("orders", orders)]


def main():
    with client:
        if Order._meta.db_table not in connection.introspection.table_names():
            with connection.schema_editor() as schema:
                schema.create_model(Order)
        for order in Order.objects.filter(number=None):  # What was stored without a number when the service ended gets it now.
            try:
                order.take_number()
            except REFUSED as error:  # For good. The others get theirs.
                print(f"the order {order.key} gets no number: {error}", file=sys.stderr)
        connection.close()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        print("ready", flush=True)
        run("127.0.0.1", int(os.environ.get("PORT", "8080")), get_wsgi_application(), threading=True)


if __name__ == "__main__":
    main()
