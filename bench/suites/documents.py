"""Documents as those of Bluesky's stream, in one column: JSONBench's five queries and others that users of PostgreSQL ask.
Atoll keeps them as `jsonb`, DuckDB as `JSON`. Size 1: a million documents, about 400 bytes each."""

import json
import re

import pyarrow

COLLECTIONS = {"app.bsky.feed.like": 55, "app.bsky.graph.follow": 20, "app.bsky.feed.post": 12, "app.bsky.feed.repost": 9,
               "app.bsky.graph.block": 3, "app.bsky.actor.profile": 1, "app.bsky.graph.listitem": 0.6, "app.bsky.feed.threadgate": 0.2}
WORDS = "the a of sea cat rain light new just today love people this is not what music game art photo morning we they good".split()
LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
TYPES = {"bluesky": {"data": ("jsonb", "json")}}
FIRST = 1_732_206_349_000_167


def tables(draw, size):
    rows = int(1_000_000 * size)
    users = [code(draw, 24) for _ in range(max(rows // 5, 1))]
    who = draw.zipf(len(users), rows, 0.8)
    about = draw.zipf(len(users), rows, 1.0)
    kind = draw.random.choice(len(COLLECTIONS), rows, p=[share / sum(COLLECTIONS.values()) for share in COLLECTIONS.values()])
    gone, other = draw.chance(0.04, rows), draw.chance(0.01, rows)
    time = FIRST + draw.random.exponential(1_000, rows).cumsum().astype(int)
    names = list(COLLECTIONS)
    yield "bluesky", pyarrow.table({"data": pyarrow.array(
        document(draw, n, f"did:plc:{users[who[n]]}", names[kind[n]], f"did:plc:{users[about[n]]}", int(time[n]), gone[n], other[n])
        for n in range(rows))})


def code(draw, length):
    return "".join(LETTERS[n] for n in draw.below(32, length))


def document(draw, number, who, collection, about, time, gone, other):
    if other:
        kind = "identity" if number % 3 else "account"
        return json.dumps({"did": who, "time_us": time, "kind": kind, kind: {"did": who, "seq": 3_000_000_000 + number}})
    commit = {"rev": f"3lbh{number:09}", "operation": "delete" if gone else "create", "collection": collection, "rkey": f"3lbh{number * 7:09}"}
    if not gone:
        moment = time // 1_000_000
        created = f"2024-11-21T{moment // 3600 % 24:02}:{moment // 60 % 60:02}:{moment % 60:02}.{time // 1000 % 1000:03}Z"
        commit["record"] = {"$type": collection, "createdAt": created, **record(draw, collection, about, number)}
        commit["cid"] = f"bafyreig{number * 2_654_435_761 % 2**64:020x}"
    return json.dumps({"did": who, "time_us": time, "kind": "commit", "commit": commit})


def record(draw, collection, about, number):
    what = collection.rsplit(".", 1)[1]
    if what in ("like", "repost"):
        return {"subject": {"cid": f"bafyreih{number:020x}", "uri": f"at://{about}/app.bsky.feed.post/3lbg{number % 50_000:09}"}}
    if what in ("follow", "block"):
        return {"subject": about}
    if what == "post":
        words = " ".join(WORDS[n] for n in draw.zipf(len(WORDS), 5 + number % 20, 0.5, scattered=False))
        found = {"text": words, "langs": [["en"], ["ja"], ["en", "pt"], ["de"]][number % 7 % 4]}
        if number % 5 == 0:
            found["facets"] = [{"features": [{"$type": "app.bsky.richtext.facet#tag", "tag": WORDS[number % 23]}], "index": {"byteStart": 0, "byteEnd": 4}}]
        if number % 3 == 0:
            found["reply"] = {"root": {"uri": f"at://{about}/app.bsky.feed.post/3lbf"}, "parent": {"uri": f"at://{about}/app.bsky.feed.post/3lbe"}}
        return found
    return {"displayName": about[8:16], "description": WORDS[number % 23]}


def both(text):
    """`{a.b}` is the text at a path, `[a.b]` what lies there: by arrows for Atoll, by one path for DuckDB."""
    def arrows(path, last):
        *keys, own = path.split(".")
        return "(data " + "".join(f"-> '{key}' " for key in keys) + f"{last} '{own}')"

    own, peer = text, text
    for opening, closing, last in ((r"\{", r"\}", "->>"), (r"\[", r"\]", "->")):
        named = f"{opening}([a-z_]+[a-zA-Z_.]*){closing}"
        own = re.sub(named, lambda found: arrows(found[1], last), own)
        peer = re.sub(named, lambda found: f"(data {last} '$.{found[1]}')", peer)
    return {"": own, "duckdb": peer}


def apart(own, peer):
    return {"": both(own)[""], "duckdb": both(peer)["duckdb"]}


MADE = "{kind} = 'commit' and {commit.operation} = 'create'"
MOMENT = {"": "to_timestamp({time_us}::bigint / 1000000)", "duckdb": "make_timestamp({time_us}::bigint)"}
QUERIES = {
    # JSONBench.
    "q1": both("select {commit.collection} as event, count(*) as n from bluesky group by event order by n desc, event"),
    "q2": both(f"""select {{commit.collection}} as event, count(*) as n, count(distinct {{did}}) as users from bluesky where {MADE}
        group by event order by n desc, event"""),
    "q3": apart(*(f"""select {{commit.collection}} as event, extract(hour from {moment}) as hour, count(*) as n from bluesky where {MADE}
        and {{commit.collection}} in ('app.bsky.feed.post', 'app.bsky.feed.repost', 'app.bsky.feed.like')
        group by event, hour order by hour, event""" for moment in MOMENT.values())),
    "q4": both(f"""select {{did}} as who, min({{time_us}}::bigint) as first_post from bluesky where {MADE}
        and {{commit.collection}} = 'app.bsky.feed.post' group by who order by first_post, who limit 3"""),
    "q5": apart(*(f"""select {{did}} as who, (max({{time_us}}::bigint) - min({{time_us}}::bigint)) {divided} 1000 as span from bluesky
        where {MADE} and {{commit.collection}} = 'app.bsky.feed.post' group by who order by span desc, who limit 3""" for divided in ("/", "//"))),
    # Others.
    "kinds": both("select {kind} as kind, count(*), min({time_us}::bigint), max({time_us}::bigint) from bluesky group by kind order by kind"),
    "minutes": apart(*(f"select date_trunc('minute', {moment}) as t, count(*) from bluesky group by t order by t" for moment in MOMENT.values())),
    "texts": both("""select count(*), avg(length({commit.record.text})), max(length({commit.record.text})) from bluesky
        where {commit.record.text} is not null"""),
    "like": both("select count(*) from bluesky where {commit.record.text} like '%rain%light%'"),
    "subjects": both("""select {commit.record.subject.uri} as uri, count(*) as n from bluesky where {commit.collection} = 'app.bsky.feed.like'
        and {commit.record.subject.uri} is not null group by uri order by n desc, uri limit 10"""),
    "languages": apart("""select l.lang, count(*) as n from bluesky cross join lateral jsonb_array_elements_text([commit.record.langs]) as l(lang)
        group by l.lang order by n desc, l.lang""", """select lang, count(*) as n from (select unnest(from_json([commit.record.langs], '["VARCHAR"]')) as lang
        from bluesky) as l group by lang order by n desc, lang"""),
    "contains": apart("""select count(*) from bluesky where data @> '{"commit": {"operation": "delete"}}'""",
                      "select count(*) from bluesky where {commit.operation} = 'delete'"),
    "exists": apart("select count(*) from bluesky where [commit.record] ? 'reply'", "select count(*) from bluesky where [commit.record.reply] is not null"),
    "facets": apart("""select f -> 'features' -> 0 ->> 'tag' as tag, count(*) as n from bluesky cross join lateral
        jsonb_array_elements([commit.record.facets]) as e(f) group by tag order by n desc, tag limit 10""",
        """select data ->> '$.commit.record.facets[0].features[0].tag' as tag, count(*) as n from bluesky
        where [commit.record.facets] is not null group by tag order by n desc, tag limit 10"""),
    "deleted": both("""select {commit.operation} as what, count(distinct {commit.collection}), count(*) from bluesky where {kind} = 'commit'
        group by what order by what"""),
    "one": both("""select {commit.record.createdAt} as at, {commit.collection} as event from bluesky where {commit.rev} = '3lbh000012345'"""),
    "top_by_event": both(f"""select event, who, n from (select {{commit.collection}} as event, {{did}} as who, count(*) as n,
        row_number() over (partition by {{commit.collection}} order by count(*) desc, {{did}}) as place from bluesky where {MADE}
        group by event, who) as r where place <= 2 order by event, place"""),
}
