import uuid

from django.db import models


class Reef(models.Model):
    name = models.CharField(max_length=40, unique=True)
    area = models.DecimalField(max_digits=9, decimal_places=2, null=True)
    about = models.TextField(default="", blank=True)


class Tag(models.Model):
    word = models.SlugField()


class Fish(models.Model):
    name = models.CharField(max_length=40, db_index=True)
    reef = models.ForeignKey(Reef, on_delete=models.CASCADE, related_name="fish_set")
    weight = models.FloatField(null=True)
    seen = models.DateTimeField(null=True)
    facts = models.JSONField(default=dict)
    number = models.UUIDField(default=uuid.uuid4)
    alive = models.BooleanField(default=True)
    tags = models.ManyToManyField(Tag)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(weight__gte=0), name="has_weight"), models.UniqueConstraint(fields=["name", "reef"], name="one_name")]
        indexes = [models.Index(fields=["-seen"], name="by_seen")]
