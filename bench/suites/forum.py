"""STATS-CEB's schema, that of a forum of questions and answers, with skewed and correlated rows: a few users write most,
a few posts get most comments and votes, and what is old is seen more. Queries count rows of joins along keys and between
foreign keys, which may be far more than the tables have. Size 1: 920,000 posts, 3.3 million votes (ten times the original)."""

import numpy
import pyarrow

from suites.draw import moments, nulls

BEGIN, SPAN = "2010-07-19", 1_500 * 86_400


def tables(draw, size):
    users, posts = max(int(400_000 * size), 100), max(int(920_000 * size), 100)
    people, created = members(draw.of("users"), users)
    yield "users", people
    rows, owner, asked, popular = entries(draw.of("posts"), posts, created)
    yield "posts", rows
    for name, share, maker in (("comments", 1.9, comments), ("votes", 3.6, votes), ("posthistory", 3.3, history), ("postlinks", 0.12, links)):
        yield name, maker(draw.of(name), int(posts * share), owner, asked, popular)
    yield "badges", badges(draw.of("badges"), 2 * users, created)
    yield "tags", topics(draw.of("tags"), max(int(10_000 * size), 50), posts)


def ids(rows):
    return numpy.arange(1, rows + 1, dtype="int32")


def members(draw, rows):
    """Those who came first have more reputation, and with it views and votes."""
    created = numpy.sort(draw.random.random(rows) ** 0.8) * SPAN
    fame = draw.zipf(rows, rows, 1.1, scattered=False)
    reputation = 1 + (200_000 / (1 + fame) * (1.5 - created / SPAN)).astype(int)
    votes = lambda share: (reputation * share * draw.random.random(rows) ** 3).astype("int32")  # noqa: E731
    return pyarrow.table({
        "id": ids(rows), "reputation": reputation.astype("int32"), "creationdate": moments(BEGIN, created.astype(int)),
        "views": votes(0.1), "upvotes": votes(0.2), "downvotes": votes(0.01),
    }), created


def entries(draw, rows, created):
    """Questions and answers. Returns their owners, moments and ranks of popularity, too."""
    owner = draw.zipf(len(created), rows, 0.8, scattered=False)
    asked = created[owner] + (SPAN - created[owner]) * draw.random.random(rows)
    order = numpy.argsort(asked, kind="stable")
    owner, asked = owner[order], asked[order]
    popular = draw.zipf(rows, rows, 0.9, scattered=False)
    question = draw.chance(0.45, rows)
    score = (40 / (1 + popular / (rows / 500)) - 1 + draw.below(4, rows)).astype("int32")
    views = (score.clip(1) * (100 + draw.below(200, rows)) * (1.2 - asked / SPAN)).astype("int32")
    return pyarrow.table({
        "id": ids(rows), "posttypeid": numpy.where(question, 1, 2).astype("int16"), "creationdate": moments(BEGIN, asked.astype(int)),
        "score": score, "viewcount": nulls(views, ~question), "owneruserid": nulls((owner + 1).astype("int32"), draw.chance(0.015, rows)),
        "answercount": nulls((score.clip(0) // 8 + draw.below(3, rows)).astype("int32"), ~question),
        "commentcount": (score.clip(0) // 4 + draw.below(3, rows)).astype("int32"),
        "favoritecount": nulls((score.clip(0) // 6).astype("int32"), draw.chance(0.7, rows)),
        "lasteditoruserid": nulls((draw.zipf(len(created), rows, 1.1, scattered=False) + 1).astype("int32"), draw.chance(0.5, rows)),
    }), owner, asked, popular


def about(draw, rows, asked, popular, skew):
    """Posts, by popularity, and moments after they were written, sorted by these."""
    by_rank = numpy.argsort(popular, kind="stable")
    post = by_rank[draw.zipf(len(asked), rows, skew, scattered=False)]
    when = asked[post] + (SPAN - asked[post]) * draw.random.random(rows) ** 3
    order = numpy.argsort(when, kind="stable")
    return post[order], when[order]


def writers(draw, rows, owner, own, share):
    """A share of the owners themselves, else a user that writes much."""
    return numpy.where(draw.chance(share, rows), own, draw.zipf(owner.max() + 1, rows, 0.9, scattered=False)) + 1


def comments(draw, rows, owner, asked, popular):
    post, when = about(draw, rows, asked, popular, 0.6)
    user = writers(draw, rows, owner, owner[post], 0.4)
    return pyarrow.table({
        "id": ids(rows), "postid": (post + 1).astype("int32"), "score": draw.zipf(60, rows, 1.8, scattered=False).astype("int32"),
        "creationdate": moments(BEGIN, when.astype(int)), "userid": nulls(user.astype("int32"), draw.chance(0.02, rows)),
    })


def votes(draw, rows, owner, asked, popular):
    post, when = about(draw, rows, asked, popular, 0.8)
    known = draw.chance(0.1, rows)
    return pyarrow.table({
        "id": ids(rows), "postid": (post + 1).astype("int32"), "votetypeid": (draw.zipf(15, rows, 2.0, scattered=False) + 2).astype("int16"),
        "creationdate": moments(BEGIN, when // 86_400 * 86_400), "userid": nulls(writers(draw, rows, owner, owner[post], 0.1).astype("int32"), ~known),
        "bountyamount": nulls((draw.below(6, rows) * 50 + 50).astype("int32"), draw.chance(0.995, rows)),
    })


def history(draw, rows, owner, asked, popular):
    post, when = about(draw, rows, asked, popular, 0.3)
    return pyarrow.table({
        "id": ids(rows), "posthistorytypeid": (draw.zipf(38, rows, 1.2, scattered=False) + 1).astype("int16"),
        "postid": (post + 1).astype("int32"), "creationdate": moments(BEGIN, when.astype(int)),
        "userid": nulls(writers(draw, rows, owner, owner[post], 0.7).astype("int32"), draw.chance(0.07, rows)),
    })


def links(draw, rows, owner, asked, popular):
    post, when = about(draw, rows, asked, popular, 0.3)
    return pyarrow.table({
        "id": ids(rows), "creationdate": moments(BEGIN, when.astype(int)), "postid": (post + 1).astype("int32"),
        "relatedpostid": (about(draw, rows, asked, popular, 0.9)[0] + 1).astype("int32"),
        "linktypeid": numpy.where(draw.chance(0.1, rows), 3, 1).astype("int16"),
    })


def badges(draw, rows, created):
    user = draw.zipf(len(created), rows, 0.7, scattered=False)
    when = created[user] + (SPAN - created[user]) * draw.random.random(rows) ** 2
    order = numpy.argsort(when, kind="stable")
    return pyarrow.table({"id": ids(rows), "userid": (user[order] + 1).astype("int32"), "date": moments(BEGIN, when[order].astype(int))})


def topics(draw, rows, posts):
    count = (posts / 4 / (1 + numpy.arange(rows))).astype("int32") + 1
    excerpt = (draw.below(posts, rows) + 1).astype("int32")
    return pyarrow.table({"id": ids(rows), "count": count, "excerptpostid": nulls(excerpt, draw.chance(0.35, rows))})


NAMED = {"u": "users", "p": "posts", "c": "comments", "v": "votes", "b": "badges", "ph": "posthistory", "pl": "postlinks", "t": "tags"}


def count(aliases, conditions):
    """The rows of a join, as STATS-CEB writes it."""
    tables_ = ", ".join(f"{NAMED[alias]} as {alias}" for alias in aliases.split())
    return f"select count(*) from {tables_} where {conditions}"


# By the user that all tables name, by the post, and by both.
QUERIES = {
    "u01": count("c b", "c.userid = b.userid and c.score = 0 and b.date <= timestamp '2011-03-01'"),
    "u02": count("c u", "c.userid = u.id and c.score >= 2 and u.upvotes >= 10"),
    "u03": count("p u", "p.owneruserid = u.id and p.viewcount >= 500 and u.reputation < 50"),
    "u04": count("ph u", "ph.userid = u.id and ph.posthistorytypeid = 2 and u.views >= 100"),
    "u05": count("v u", "v.userid = u.id and v.votetypeid = 5 and u.downvotes = 0"),
    "u06": count("b u", "b.userid = u.id and u.upvotes >= 0 and b.date >= timestamp '2012-09-19'"),
    "u07": count("p b u", "p.owneruserid = u.id and b.userid = u.id and p.answercount >= 4 and u.creationdate <= timestamp '2011-01-01'"),
    "u08": count("c p u", "c.userid = u.id and p.owneruserid = u.id and c.score >= 4 and p.score >= 20 and u.reputation >= 300"),
    "u09": count("c v u", "c.userid = u.id and v.userid = u.id and c.creationdate >= timestamp '2013-10-01' and v.bountyamount > 0"),
    "u10": count("b v u", "b.userid = u.id and v.userid = u.id and u.views between 1 and 40 and v.votetypeid >= 6"),
    "u11": count("c b p u", "c.userid = u.id and b.userid = u.id and p.owneruserid = u.id and p.score >= 25 and c.score >= 3 and u.upvotes < 30"),
    "u12": count("v ph b u", "v.userid = u.id and ph.userid = u.id and b.userid = u.id and ph.posthistorytypeid = 24 and u.reputation <= 60"),
    "u13": count("c ph", "c.userid = ph.userid and c.creationdate <= timestamp '2010-10-20' and ph.posthistorytypeid >= 20"),
    "u14": count("p v", "p.owneruserid = v.userid and p.viewcount >= 2000 and v.bountyamount >= 100"),
    "u15": count("c p ph b u", """c.userid = u.id and p.owneruserid = u.id and ph.userid = u.id and b.userid = u.id
        and u.creationdate >= timestamp '2013-06-01' and p.posttypeid = 1 and u.reputation >= 2 and c.score >= 1"""),
    "u16": count("c p v b u", """u.id = c.userid and u.id = p.owneruserid and u.id = v.userid and u.id = b.userid and v.bountyamount >= 0
        and u.reputation between 1 and 120 and p.commentcount >= 1 and b.date >= timestamp '2012-01-01'"""),
    "p01": count("c p", "c.postid = p.id and c.score = 0 and p.viewcount <= 300"),
    "p02": count("v p", "v.postid = p.id and v.votetypeid = 3 and p.score <= 2"),
    "p03": count("pl p", "pl.relatedpostid = p.id and pl.linktypeid = 1 and p.favoritecount >= 1"),
    "p04": count("ph p", "ph.postid = p.id and ph.creationdate >= timestamp '2013-01-01' and p.commentcount <= 2 and p.posttypeid = 1"),
    "p05": count("t p", "t.excerptpostid = p.id and p.posttypeid = 2"),
    "p06": count("c v p", "c.postid = p.id and v.postid = p.id and p.score between 5 and 12 and v.votetypeid = 2"),
    "p07": count("c ph p", "c.postid = p.id and ph.postid = p.id and c.score >= 2 and p.answercount <= 1"),
    "p08": count("pl c p", "pl.postid = p.id and c.postid = p.id and p.viewcount >= 200 and pl.creationdate >= timestamp '2012-01-01'"),
    "p09": count("pl v ph p", """pl.postid = p.id and v.postid = p.id and ph.postid = p.id and pl.linktypeid = 3
        and v.creationdate >= timestamp '2012-06-01' and p.score >= 1"""),
    "p10": count("c v ph p", "c.postid = p.id and v.postid = p.id and ph.postid = p.id and c.score >= 3 and ph.posthistorytypeid >= 5 and p.posttypeid = 1"),
    "p11": count("c v", "c.postid = v.postid and v.bountyamount >= 0 and c.creationdate >= timestamp '2013-01-01'"),
    "p12": count("v ph", "v.postid = ph.postid and ph.posthistorytypeid = 3 and v.votetypeid = 8"),
    "p13": count("pl p t", "pl.postid = p.id and t.excerptpostid = p.id"),
    "p14": count("c pl v ph p", """c.postid = p.id and pl.postid = p.id and v.postid = p.id and ph.postid = p.id and p.viewcount >= 400
        and pl.linktypeid = 3 and v.votetypeid <> 2 and c.score >= 1"""),
    "m01": count("c p u", "c.postid = p.id and u.id = p.owneruserid and u.reputation >= 100 and c.creationdate <= timestamp '2011-06-01'"),
    "m02": count("v p u", "v.postid = p.id and p.owneruserid = u.id and u.upvotes = 0 and v.votetypeid = 5 and p.score >= 1"),
    "m03": count("c p u b", """c.postid = p.id and p.owneruserid = u.id and b.userid = u.id and c.score >= 2 and p.posttypeid = 1
        and u.creationdate >= timestamp '2012-06-01'"""),
    "m04": count("ph p u", "ph.postid = p.id and p.owneruserid = u.id and ph.userid = u.id and p.viewcount >= 100 and ph.posthistorytypeid = 5"),
    "m05": count("c p ph u", "c.postid = p.id and ph.postid = p.id and p.owneruserid = u.id and u.views < 5 and ph.posthistorytypeid = 1 and c.score = 0"),
    "m06": count("pl p u", "pl.relatedpostid = p.id and p.owneruserid = u.id and u.downvotes >= 1 and pl.linktypeid = 1"),
    "m07": count("v p u b", "v.postid = p.id and p.owneruserid = u.id and b.userid = u.id and v.votetypeid = 4 and u.reputation <= 200"),
    "m08": count("c p u v", """c.userid = u.id and p.owneruserid = u.id and v.postid = p.id and p.score >= 15 and c.score >= 5
        and v.creationdate >= timestamp '2013-01-01' and u.creationdate >= timestamp '2011-01-01'"""),
    "m09": count("p c v u", "p.id = c.postid and p.id = v.postid and u.id = c.userid and u.reputation between 20 and 80 and v.votetypeid >= 3"),
    "m10": count("pl p c u b", """pl.postid = p.id and c.postid = p.id and u.id = c.userid and b.userid = u.id and pl.linktypeid = 3
        and u.reputation <= 300 and c.score <= 1"""),
    "m11": count("p ph pl v c", """p.id = ph.postid and p.id = pl.relatedpostid and p.id = v.postid and p.id = c.postid and pl.linktypeid = 3
        and ph.posthistorytypeid >= 8 and v.votetypeid >= 3 and c.score >= 2 and p.score <= 6"""),
    "m12": count("p u b ph", "p.lasteditoruserid = u.id and b.userid = u.id and ph.postid = p.id and p.favoritecount >= 2 and ph.posthistorytypeid = 2 and u.upvotes <= 10"),
    "m13": count("c v ph pl p u b", """p.id = pl.relatedpostid and c.postid = p.id and v.postid = p.id and ph.postid = p.id and p.owneruserid = u.id
        and b.userid = u.id and u.reputation <= 50 and pl.linktypeid = 3 and c.score >= 1 and v.votetypeid >= 3"""),
    "m14": count("c p t", "c.postid = p.id and t.excerptpostid = p.id and t.count >= 100"),
    "m15": count("b c u p ph", """u.id = b.userid and u.id = p.owneruserid and ph.postid = p.id and c.postid = p.id and b.date <= timestamp '2011-09-01'
        and ph.creationdate >= timestamp '2013-06-01' and c.score >= 1 and u.views <= 60"""),
}
