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
        if cast(Any, self).default not in (models.NOT_PROVIDED, None, ""):
            found.append(checks.Error("a field with a default takes no id", obj=self, id="idnode.E002"))
        return found

    def contribute_to_class(self, model: Any, name: str, **options: Any) -> None:
        super().contribute_to_class(model, name, **options)  # type: ignore[misc]
        if not hasattr(model._save_table, "fills"):  # Its bases, or another field, may have done so.
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
        if len({id(instance) for instance in empty}) < len(empty):
            raise ValueError(f"one object is to be stored twice, and has one {cast(Any, self).name}")
        if empty:
            taken = _sources.take(import_string(self._source), len(empty), isinstance(self, models.IntegerField))
            for instance, value in zip(empty, taken):
                setattr(instance, self.attname, value)  # type: ignore[attr-defined]
        return len(empty)

    def keep(self, instance: models.Model, fills: bool, rows: Any) -> None:
        """Gives an object without an id that of its row, or a new one if there is no row. Without fills, a row must not lose its id."""
        field = cast(Any, self)
        ids = list(rows.values_list(field.attname, flat=True))
        if fills and ids:
            setattr(instance, field.attname, ids[0])
        elif fills:
            self.fill([instance])
        elif ids and ids[0] is not None:
            raise ValueError(f"{field} of a stored object becomes None")


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
        meta, fills = (cls or type(self))._meta, raw and self._state.adding
        for field in meta.local_concrete_fields:
            written = not field.primary_key and (not update_fields or field.name in update_fields)
            if isinstance(field, _Filled) and written and (fills or cast(Any, field).null) and field.empty([self]):
                rows, stored = meta.model._base_manager.using(using), self._get_pk_val(meta)
                field.keep(self, fills, rows.none() if force_insert or stored is None else rows.filter(pk=stored))
        key = meta.pk
        if isinstance(key, _Filled) and not force_update and not update_fields:
            new = key.fill([self])
            force_insert = bool(force_insert or new or not raw and self._state.adding)
        return save_table(self, raw, cls, force_insert, force_update, using, update_fields)
    setattr(save, "fills", True)
    return save


def _fills(bulk_create: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(bulk_create)
    def create(self: Any, objs: Iterable[Any], batch_size: Any = None, ignore_conflicts: bool = False, *args: Any, **options: Any) -> Any:
        objs = list(objs)
        given = {**dict(zip(("update_conflicts", "update_fields", "unique_fields"), args)), **options}
        target = given.get("unique_fields")
        fields = [field for field in self.model._meta.concrete_fields if isinstance(field, _Filled)]
        for field in fields:  # Before any is filled: a second call would pass.
            # MySQL updates the row that has any value of a unique column, and takes no target.
            changes = not target or cast(Any, field).unique or not {cast(Any, field).name, cast(Any, field).column}.isdisjoint(target)
            if given.get("update_conflicts") and changes and field.empty(objs):
                raise ValueError(f"with update_conflicts an id that is taken would change a row: give {cast(Any, field).name} a value")
        for field in fields:
            field.fill(objs)
        return bulk_create(self, objs, batch_size, ignore_conflicts, *args, **options)
    return create


models.QuerySet.bulk_create = _fills(models.QuerySet.bulk_create)
