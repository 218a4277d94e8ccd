"""Fields of models that idnode fills, for Django 3.2 and newer.

    class User(models.Model):
        id = IdField("shop.ids.users", primary_key=True)  # 'users/1-A'; shop/ids.py has: users = client.hilo("users")

    class Order(models.Model):
        number = NumberField("shop.ids.orders")  # orders = client.identity("orders")

A source is the path of a handle of HiLo or Snowflake or an identity, or of a function that returns one; a migration holds no more
than that. An id is taken when a row is inserted whose field is empty, and a number that is not saved then stays unused: what must
have no hole is a series. A new object is inserted and never updates a row: an id that is taken is an IntegrityError.

The import of this module has ``QuerySet.bulk_create`` take the ids of all objects by one call.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Iterable, cast

from django.core import checks
from django.db import models
from django.utils.module_loading import import_string

from . import _sources


class _Filled:
    """What both fields do."""

    empty_strings_allowed = False  # An object that was not saved has None.

    def __init__(self, source: str = "", **options: Any) -> None:
        self._source = source
        super().__init__(**{"blank": True, "editable": False, "unique": True, **options})

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        name, path, args, options = super().deconstruct()  # type: ignore[misc]
        return name, path, args, {**options, "source": self._source, "unique": self.unique}  # type: ignore[attr-defined]

    def check(self, **options: Any) -> list[Any]:
        """Adds that nothing can be taken from the source."""
        found = list(super().check(**options))  # type: ignore[misc]
        try:
            _sources.check(import_string(self._source))
        except (ImportError, TypeError, AttributeError) as error:
            found.append(checks.Error(f"{self._source!r} is no source of ids: {error}", obj=self, id="idnode.E001"))
        return found

    def contribute_to_class(self, model: Any, name: str, **options: Any) -> None:
        super().contribute_to_class(model, name, **options)  # type: ignore[misc]
        model._save_table = _inserts(model._save_table)

    def pre_save(self, instance: models.Model, add: bool) -> Any:
        if add:
            self.fill([instance])
        return getattr(instance, self.attname)  # type: ignore[attr-defined]

    def empty(self, instances: Iterable[models.Model]) -> list[models.Model]:
        """Those whose field is empty."""
        return [instance for instance in instances if getattr(instance, self.attname) in (None, "")]  # type: ignore[attr-defined]

    def fill(self, instances: Iterable[models.Model]) -> int:
        """Fills the field where it is empty, by one call, and returns how often it was."""
        empty = self.empty(instances)
        if empty:
            taken = _sources.take(import_string(self._source), len(empty), isinstance(self, models.IntegerField))
            for instance, value in zip(empty, taken):
                setattr(instance, self.attname, value)  # type: ignore[attr-defined]
        return len(empty)


class IdField(_Filled, models.CharField):  # type: ignore[misc]
    """Holds ids as text, as HiLo has them."""

    def __init__(self, source: str = "", **options: Any) -> None:
        super().__init__(source, **{"max_length": 255, **options})


class NumberField(_Filled, models.BigIntegerField):  # type: ignore[misc]
    """Holds numbers: those of an identity or of Snowflake, or of HiLo without its prefix."""


def _inserts(save_table: Callable[..., bool]) -> Callable[..., bool]:
    """Has a model insert its new objects, and fill those of fixtures.

    Where the key has no default, Django tries an UPDATE before. It asks no field for its value in a raw save.
    """
    @functools.wraps(save_table)
    def save(
        self: Any, raw: bool = False, cls: Any = None, force_insert: bool = False, force_update: bool = False, using: Any = None,
        update_fields: Any = None,
    ) -> bool:
        meta = (cls or type(self))._meta
        for field in meta.local_concrete_fields if raw and self._state.adding else ():
            if isinstance(field, _Filled) and not field.primary_key:  # type: ignore[attr-defined]
                field.fill([self])
        key = meta.pk
        if isinstance(key, _Filled) and not force_update and not update_fields:
            new = key.fill([self])
            force_insert = bool(force_insert or new or not raw and self._state.adding)
        return save_table(self, raw, cls, force_insert, force_update, using, update_fields)
    return save


def _fills(bulk_create: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(bulk_create)
    def create(self: Any, objs: Iterable[Any], batch_size: Any = None, ignore_conflicts: bool = False, *args: Any, **options: Any) -> Any:
        objs = list(objs)
        updates = options.get("update_conflicts") or args[:1] == (True,)
        fields = [field for field in self.model._meta.concrete_fields if isinstance(field, _Filled)]
        for field in fields:  # Before any is filled: a second call would pass.
            if updates and cast(Any, field).unique and field.empty(objs):
                raise ValueError(f"with update_conflicts an id that is taken would change a row: give {cast(Any, field).name} a value")
        for field in fields:
            field.fill(objs)
        return bulk_create(self, objs, batch_size, ignore_conflicts, *args, **options)
    return create


models.QuerySet.bulk_create = _fills(models.QuerySet.bulk_create)
