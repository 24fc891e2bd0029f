"""Django against `atoll serve`: migrations of its own applications and of one with models of many types, and its ORM."""
import datetime, decimal, os, sys, uuid

import django
from django.apps import AppConfig
from django.conf import settings


def configure(port, host="127.0.0.1", user="ann", name="atoll"):
    """Django with the applications that a new project has, and the one of this folder."""
    settings.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": name, "USER": user, "HOST": host, "PORT": str(port)}},
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "django.contrib.admin", "django.contrib.messages", "reefs"],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", USE_TZ=True, TIME_ZONE="UTC", SECRET_KEY="reef",
        TEMPLATES=[], MIDDLEWARE=[],
    )
    django.setup()


def same(found, wanted, what):
    assert found == wanted, f"{what}:\n  found  {found!r}\n  wanted {wanted!r}"


def main(port, *where):
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    configure(port, *where)
    from django.core.management import call_command
    from django.db import IntegrityError, connection, transaction
    from django.db.models import Avg, Count, Exists, F, Max, OuterRef, Prefetch, Q, Subquery, Sum, Value, Window
    from django.db.models.functions import Coalesce, Lower, Rank, TruncMonth

    call_command("migrate", verbosity=0)
    call_command("migrate", verbosity=0)
    from reefs.models import Fish, Reef, Tag

    for model in (Fish, Reef, Tag):
        model.objects.all().delete()
    north, south = Reef.objects.create(name="north", area=decimal.Decimal("12.50")), Reef.objects.create(name="south")
    day = datetime.datetime(2026, 11, 25, 12, tzinfo=datetime.timezone.utc)
    Fish.objects.bulk_create([Fish(name=f"fish {n}", reef=[north, south][n % 2], weight=n / 4, seen=day + datetime.timedelta(days=10 * n), facts={"n": n}, number=uuid.UUID(int=n)) for n in range(10)])
    tags = [Tag.objects.create(word=word) for word in ["small", "blue"]]
    first = Fish.objects.order_by("id")[0]
    first.tags.set(tags)
    same(sorted(tag.word for tag in first.tags.all()), ["blue", "small"], "many to many")
    # Groups by the primary key, with all columns of the table.
    found = Reef.objects.annotate(fish=Count("fish_set"), heaviest=Max("fish_set__weight")).order_by("name")
    same([(own.name, own.fish, own.heaviest, own.area) for own in found], [("north", 5, 2.0, decimal.Decimal("12.50")), ("south", 5, 2.25, None)], "annotate")
    same([own.name for own in found.filter(fish__gt=4, heaviest__gt=2)], ["south"], "having")
    same(Fish.objects.aggregate(n=Count("id"), w=Sum("weight"), a=Avg("weight")), {"n": 10, "w": 11.25, "a": 1.125}, "aggregate")
    same(list(Fish.objects.values("reef__name").annotate(n=Count("id")).order_by("reef__name")), [{"reef__name": "north", "n": 5}, {"reef__name": "south", "n": 5}], "values")
    months = Fish.objects.annotate(month=TruncMonth("seen")).values("month").annotate(n=Count("id")).order_by("month")
    same([(row["month"].month, row["n"]) for row in months], [(11, 1), (12, 3), (1, 3), (2, 3)], "months")
    newest = Fish.objects.filter(reef=OuterRef("pk")).order_by("-seen")
    same([own.last for own in Reef.objects.annotate(last=Subquery(newest.values("name")[:1])).order_by("name")], ["fish 8", "fish 9"], "a subquery")
    same([own.name for own in Reef.objects.filter(Exists(newest.filter(weight__gt=2.1)))], ["south"], "exists")
    ranks = Fish.objects.annotate(rank=Window(Rank(), partition_by=F("reef"), order_by=F("weight").desc())).filter(rank=1).order_by("name")
    same([own.name for own in ranks], ["fish 8", "fish 9"], "windows")
    same(Fish.objects.filter(facts__n=3).get().name, "fish 3", "JSON")
    same(Fish.objects.filter(Q(name__icontains="FISH") & ~Q(name__endswith="1"), name__regex=r"\d$").count(), 9, "conditions")
    same(Fish.objects.annotate(low=Lower("name"), w=Coalesce("weight", Value(0.0))).filter(low="fish 2").get().w, 0.5, "functions")
    same([len(own.fish_set.all()) for own in Reef.objects.prefetch_related(Prefetch("fish_set", queryset=Fish.objects.filter(weight__lt=1))).order_by("name")], [2, 2], "prefetch")
    same([own.reef.name for own in Fish.objects.select_related("reef").order_by("id")[:2]], ["north", "south"], "select_related")
    same(Fish.objects.in_bulk([first.pk])[first.pk].name, "fish 0", "in_bulk")
    same(sorted(Fish.objects.values_list("name", flat=True).union(Tag.objects.values_list("word", flat=True)))[:2], ["blue", "fish 0"], "union")
    # Writes.
    same(Reef.objects.update_or_create(name="north", defaults={"area": 3})[1], False, "update_or_create")
    same(Reef.objects.update_or_create(name="east", defaults={"area": 1})[1], True, "update_or_create")
    same(Reef.objects.get_or_create(name="east")[1], False, "get_or_create")
    same(Fish.objects.filter(reef=south).update(weight=F("weight") + 1), 5, "update")
    Fish.objects.bulk_update([Fish(pk=first.pk, name="zero")], ["name"])
    same(Fish.objects.get(pk=first.pk).name, "zero", "bulk_update")
    Reef.objects.bulk_create([Reef(name="east", area=7)], update_conflicts=True, unique_fields=["name"], update_fields=["area"])
    same(Reef.objects.get(name="east").area, 7, "update_conflicts")
    Reef.objects.bulk_create([Reef(name="east")], ignore_conflicts=True)
    with transaction.atomic():
        locked = Fish.objects.select_for_update().get(pk=first.pk)
        locked.weight = 5
        locked.save()
        same(Fish.objects.select_for_update(skip_locked=True, of=("self",)).select_related("reef").filter(weight=5).count(), 1, "skip_locked")
        same(len(Fish.objects.select_for_update(no_key=True, nowait=True)[:2]), 2, "no_key")
        try:
            with transaction.atomic():
                Reef.objects.create(name="north")
            raise SystemExit("a name is there twice")
        except IntegrityError:
            pass
    same(Fish.objects.get(pk=first.pk).weight, 5, "an atomic block")
    try:
        with transaction.atomic():
            Fish.objects.all().delete()
            raise KeyError("undone")
    except KeyError:
        pass
    same(Fish.objects.count(), 10, "a rollback")
    same([own.name for own in Fish.objects.order_by("id").iterator(chunk_size=3)][:1], ["zero"], "a cursor of the server")
    same(Fish.objects.filter(pk__in=Fish.objects.filter(weight__gt=2).values("pk")).explain() != "", True, "explain")
    south.delete()
    same(Fish.objects.count(), 5, "cascade")
    # What inspectdb and the autodetector read.
    with connection.cursor() as cursor:
        introspection = connection.introspection
        same({"reefs_fish", "reefs_reef"} <= set(introspection.table_names(cursor)), True, "tables")
        columns = {own.name: own for own in introspection.get_table_description(cursor, "reefs_fish")}
        same((columns["name"].null_ok, columns["seen"].null_ok, columns["name"].display_size), (False, True, 40), "columns")
        relations = introspection.get_relations(cursor, "reefs_fish")
        same(relations["reef_id"][:2], ("id", "reefs_reef"), "relations")
        constraints = introspection.get_constraints(cursor, "reefs_fish")
        same(any(own["primary_key"] and own["columns"] == ["id"] for own in constraints.values()), True, "the primary key")
        same(any(own["foreign_key"] == ("reefs_reef", "id") for own in constraints.values()), True, "the foreign key")
        same(introspection.get_sequences(cursor, "reefs_fish")[0]["column"], "id", "sequences")
        same(introspection.get_primary_key_column(cursor, "reefs_fish"), "id", "the key's column")
    from io import StringIO

    told = StringIO()
    call_command("inspectdb", "reefs_fish", "reefs_reef", stdout=told)
    same("class ReefsFish(models.Model)" in told.getvalue() and "max_length=40" in told.getvalue(), True, told.getvalue())
    call_command("sqlflush", verbosity=0, stdout=StringIO())
    # Back, and forth.
    call_command("migrate", "reefs", "zero", verbosity=0)
    call_command("migrate", "reefs", verbosity=0)
    same(Fish.objects.count(), 0, "after all migrations")
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
