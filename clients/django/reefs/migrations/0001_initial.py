import uuid

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel("Reef", [("id", models.BigAutoField(primary_key=True)), ("name", models.CharField(max_length=20)), ("size", models.IntegerField(null=True)), ("gone", models.IntegerField(default=1))]),
        migrations.CreateModel("Tag", [("id", models.BigAutoField(primary_key=True)), ("word", models.SlugField())]),
        migrations.CreateModel("Fish", [
            ("id", models.BigAutoField(primary_key=True)), ("name", models.CharField(max_length=40, db_index=True)),
            ("reef", models.ForeignKey("reefs.Reef", on_delete=django.db.models.deletion.CASCADE, related_name="fish_set")),
            ("old", models.ForeignKey("reefs.Reef", null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="old_set")),
            ("weight", models.FloatField(null=True)), ("seen", models.DateTimeField(null=True)), ("facts", models.JSONField(default=dict)),
            ("number", models.UUIDField(default=uuid.uuid4)), ("alive", models.BooleanField(default=True)),
        ]),
    ]
