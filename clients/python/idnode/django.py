"""Fields of models that idnode fills, for Django 3.2 and newer.

    class User(models.Model):
        id = IdField("shop.ids.users", primary_key=True)  # 'users/1-A'; shop/ids.py has: users = client.hilo("users")

    class Order(models.Model):
        number = NumberField("shop.ids.orders", unique=True)  # orders = client.identity("orders")

A source is the path of a HiLo handle or an identity, or of a function that returns one; a migration holds no more than that.
An id is taken when a row is inserted whose field is empty, and a number that is not saved then stays unused: what must have
no hole is a series. Objects inserted by ``bulk_create`` get theirs one by one.
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils.module_loading import import_string

from ._threads import HiLo, Identity


class _Filled:
    """What both fields do."""

    empty_strings_allowed = False  # An object that was not saved has None.

    def __init__(self, source: str = "", **options: Any) -> None:
        self._source = source
        super().__init__(**{"blank": True, "editable": False, **options})

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        name, path, args, options = super().deconstruct()  # type: ignore[misc]
        return name, path, args, {**options, "source": self._source}

    def pre_save(self, instance: models.Model, add: bool) -> Any:
        if add and getattr(instance, self.attname) in (None, ""):  # type: ignore[attr-defined]
            setattr(instance, self.attname, self._take())  # type: ignore[attr-defined]
        return getattr(instance, self.attname)  # type: ignore[attr-defined]

    def get_pk_value_on_save(self, instance: models.Model) -> Any:
        """What Django asks for the primary key of a new row."""
        return self._take()

    def _take(self) -> Any:
        found = import_string(self._source)
        source = found if isinstance(found, (HiLo, Identity)) else found()
        taken = source.next()
        return self.to_python(getattr(taken, "value", taken) if isinstance(self, models.IntegerField) else taken)  # type: ignore[attr-defined]


class IdField(_Filled, models.CharField):  # type: ignore[misc]
    """Holds ids as text, as HiLo has them."""

    def __init__(self, source: str = "", **options: Any) -> None:
        super().__init__(source, **{"max_length": 255, **options})


class NumberField(_Filled, models.BigIntegerField):  # type: ignore[misc]
    """Holds numbers: those of an identity, or of HiLo without its prefix."""
