from django.db import migrations, models


def fill(apps, _):
    apps.get_model("reefs", "Reef").objects.update(about="none")


class Migration(migrations.Migration):
    dependencies = [("reefs", "0001_initial")]
    operations = [
        migrations.AddField("Reef", "about", models.TextField(default="", blank=True)),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.RenameField("Reef", "size", "area"),
        migrations.AlterField("Reef", "area", models.DecimalField(max_digits=9, decimal_places=2, null=True)),
        migrations.AlterField("Reef", "name", models.CharField(max_length=40, unique=True)),
        migrations.RemoveField("Reef", "gone"),
        migrations.RemoveField("Fish", "old"),
        migrations.AddField("Fish", "tags", models.ManyToManyField(to="reefs.tag")),
        migrations.AddConstraint("Fish", models.CheckConstraint(condition=models.Q(weight__gte=0), name="has_weight")),
        migrations.AddConstraint("Fish", models.UniqueConstraint(fields=["name", "reef"], name="one_name")),
        migrations.AddIndex("Fish", models.Index(fields=["-seen"], name="by_seen")),
        migrations.RenameModel("Tag", "Word"),
        migrations.RenameModel("Word", "Tag"),
        migrations.AlterModelTable("Tag", "reefs_words"),
        migrations.AlterModelTable("Tag", None),
    ]
