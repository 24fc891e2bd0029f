"""The Join Order Benchmark: its schema of 21 tables with rows drawn here, skewed and correlated as those of a film database
are (popular films have more of everything, roles follow gender, notes follow roles and kinds of companies, kinds and years
go together), and its 113 queries, whose joins and constants are those of the benchmark. Size 1: a tenth of the original,
250,000 titles, 3.6 million roles, 1.5 million infos."""

import numpy
import pyarrow

from suites.draw import nulls, take
from suites.job_queries import queries

KINDS = ["movie", "tv series", "tv movie", "video movie", "tv mini series", "video game", "episode"]
ROLES = ["actor", "actress", "producer", "writer", "cinematographer", "composer", "costume designer", "director", "editor",
         "miscellaneous crew", "production designer", "guest"]
LINKS = ["follows", "followed by", "remake of", "remade as", "references", "referenced in", "spoofs", "spoofed in", "features",
         "featured in", "spin off from", "spin off", "version of", "similar to", "edited into", "edited from",
         "alternate language version of", "unknown link"]
INFOS = {1: "runtimes", 2: "color info", 3: "genres", 4: "languages", 5: "certificates", 6: "sound mix", 7: "tech info", 8: "countries",
         15: "quotes", 16: "release dates", 17: "trivia", 19: "mini biography", 21: "birth date", 22: "height", 98: "plot",
         99: "votes distribution", 100: "votes", 101: "rating", 105: "budget", 107: "gross", 112: "top 250 rank", 113: "bottom 10 rank"}
COUNTRIES = ["us", "gb", "de", "fr", "jp", "it", "ca", "in", "es", "nl", "se", "ru", "pl", "br", "dk", "no", "sm", "bg"]
LANDS = ["USA", "UK", "Germany", "France", "Japan", "Italy", "Canada", "India", "Spain", "Netherlands", "Sweden", "Denmark", "Norway",
         "Denish", "Bulgaria"]
TONGUES = ["English", "German", "French", "Japanese", "Italian", "Spanish", "Hindi", "Swedish", "Danish", "Norwegian", "American", "Norway"]
GENRES = ["Drama", "Comedy", "Documentary", "Short", "Romance", "Action", "Thriller", "Crime", "Family", "Horror", "Adventure",
          "Animation", "Sci-Fi", "Mystery", "War", "Western"]
KEYWORDS = ["murder", "character-name-in-title", "female-nudity", "based-on-novel", "death", "violence", "blood", "sequel", "revenge",
            "independent-film", "fight", "hospital", "gore", "hero", "martial-arts", "superhero", "robot", "second-part", "based-on-comic",
            "hand-to-hand-combat", "computer-animation", "tv-special", "nerd", "loner", "alienation", "dignity", "magnet", "web", "claw",
            "laser", "marvel-cinematic-universe", "murder-in-title", "computer-animated-movie", "10,000-mile-club", "sequel-to-film",
            "marvel-comics", "bloody"]
WORDS = """Night Day Love Man Woman Life World City House Road King Queen Dream Star River Winter Summer Blood Dark Last First
    Lost Secret Money Story Girl Boy War Heart Fire Water Game Shadow Return Murder Movie Vampire Champion Loser Dragon Panda
    Saw Freddy Jason Kung Fu Birdemic Iron Mord One Piece""".split()
FIRST = """Michael John David Maria Anna Robert Peter Paul Tim Angela James Mary Anne Bert Albert Laura Yoko Yuki Yolanda Jan Eva
    Nina Carlos Ivan Chris Angelina Andrea Hans Zoe Kim""".split()
LAST = """Smith Johnson Brown Miller Garcia Downey Bauer Berg Zhang Xu Tanaka Yoshida Rossi Novak Bell Baker Cooper Davis Evans
    Fischer Gray Hill Ito Jones King Lee Moore Nilsson Olsen Xavier Zimmer Quinn""".split()
ASKED = ["Shrek 2", "Kung Fu Panda", "Kung Fu Panda 2", "One Piece Film", "Dragon Ball Z", "Vampire Night", "Saw II", "Birdemic"]
COMPANIES = ["Warner Home Video", "20th Century Fox Home Entertainment", "Twentieth Century Fox Film Corporation", "Universal Pictures",
             "YouTube", "Lionsgate", "Lionsgate Films", "DreamWorks Animation", "Columbia Pictures", "Warner Bros. Television"]


def tables(draw, size):
    titles, people = max(int(250_000 * size), 500), max(int(420_000 * size), 500)
    yield from fixed()
    rank = draw.of("rank").random.permutation(titles)
    films, kind, year = filmed(draw.of("title"), rank)
    yield "title", films
    persons, gender = named(draw.of("name"), people)
    yield "name", persons
    film = lambda own, rows, skew: rank[own.zipf(titles, rows, skew, scattered=False)]  # noqa: E731
    words, firms, figures = max(int(13_000 * size), 200), max(int(23_000 * size), 200), max(int(300_000 * size), 300)
    yield "keyword", keywords(words)
    yield "company_name", companies(draw.of("company_name"), firms)
    yield "char_name", characters(draw.of("char_name"), figures)
    for table, rows, maker in (
            ("cast_info", 3_600_000, lambda own, n: cast(own, film(own, n, 0.55), gender, figures)),
            ("movie_keyword", 450_000, lambda own, n: tagged(own, film(own, n, 0.7), words)),
            ("movie_companies", 260_000, lambda own, n: backed(own, film(own, n, 0.4), year, firms)),
            ("movie_info", 1_500_000, lambda own, n: informed(own, film(own, n, 0.5), year)),
            ("aka_title", 36_000, lambda own, n: also(own, film(own, n, 0.5), kind, year)),
            ("movie_link", 12_000, lambda own, n: linked(own, film(own, n, 0.6), film(own, n, 0.6), kind, rank)),
            ("complete_cast", 13_500, lambda own, n: completed(own, film(own, n, 0.5))),
            ("aka_name", 90_000, lambda own, n: renamed(own, n, people)),
            ("person_info", 300_000, lambda own, n: lives(own, n, people))):
        yield table, maker(draw.of(table), max(int(rows * size), 500))
    yield "movie_info_idx", rated(draw.of("movie_info_idx"), rank)


def ids(rows):
    return numpy.arange(1, rows + 1, dtype="int32")


def fixed():
    """The small tables of kinds."""
    for table, column, values in (("kind_type", "kind", KINDS), ("role_type", "role", ROLES), ("link_type", "link", LINKS),
                                  ("comp_cast_type", "kind", ["cast", "crew", "complete", "complete+verified"]),
                                  ("company_type", "kind", ["distributors", "production companies", "special effects companies",
                                                            "miscellaneous companies"]),
                                  ("info_type", "info", [INFOS.get(n, f"info {n}") for n in range(1, 114)])):
        yield table, pyarrow.table({"id": ids(len(values)), column: values})


def code(draw, rows, share=0.1):
    """A letter and three digits, as SOUNDEX gives."""
    values = [f"{letter}{n:03}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" for n in range(1, 60)]
    return nulls(take(values, draw.below(len(values), rows)), draw.chance(share, rows))


def digests(rows):
    return pyarrow.array([f"{n * 0x9E3779B97F4A7C15 % 2**128:032x}" for n in range(1, rows + 1)])


def phrases(draw, rows, words, most=4):
    """Some of the words, the first ones more often; a number behind most, so that they differ."""
    count = draw.below(most, rows) + 1
    picked = draw.zipf(len(words), (rows, most), 0.4, scattered=False)
    number = draw.below(rows, rows)
    return pyarrow.array([" ".join(words[n] for n in some[:many]) + (f" {one}" if one % 3 else "")
                          for some, many, one in zip(picked.tolist(), count.tolist(), number.tolist())])


def filmed(draw, rank):
    """Episodes are late and most of all; films are of all years. Of the most popular ones some have names that are asked for."""
    rows = len(rank)
    kind = draw.random.choice(7, rows, p=[0.25, 0.04, 0.04, 0.05, 0.005, 0.01, 0.605])
    late = numpy.where(kind == 6, 4.0, numpy.where(kind >= 3, 5.0, 1.8))
    year = (1890 + 126 * draw.random.random(rows) ** (1 / late)).astype("int32")
    episode = kind == 6
    titles = phrases(draw, rows, WORDS).to_pylist()
    for n, title in enumerate(ASKED * 20):
        at = rank[3 * n % rows]
        titles[at], kind[at] = title, 0
        year[at] = 2003 + n % 12
    number = draw.zipf(300, rows, 0.7, scattered=False).astype("int32") + 1
    return pyarrow.table({
        "id": ids(rows), "title": titles, "imdb_index": nulls(take(["I", "II", "III"], draw.below(3, rows)), draw.chance(0.98, rows)),
        "kind_id": (kind + 1).astype("int32"), "production_year": nulls(year, draw.chance(0.03, rows)), "imdb_id": nulls(ids(rows), draw.chance(1, rows)),
        "phonetic_code": code(draw, rows), "episode_of_id": nulls((draw.zipf(rows, rows, 0.9) + 1).astype("int32"), ~episode),
        "season_nr": nulls(number // 12 + 1, ~episode), "episode_nr": nulls(number, ~episode),
        "series_years": nulls(take([f"{y}-{y + 5}" for y in range(1950, 2015)], draw.below(65, rows)), kind != 1), "md5sum": digests(rows),
    }), kind, year


def named(draw, rows):
    gender = draw.random.choice(3, rows, p=[0.42, 0.23, 0.35])
    last, first = draw.zipf(len(LAST), rows, 0.3, scattered=False), draw.zipf(len(FIRST), rows, 0.3, scattered=False)
    number = draw.below(rows, rows)
    names = [f"{LAST[a]}, {FIRST[b]}" + (f" {n}" if n % 4 else "") for a, b, n in zip(last.tolist(), first.tolist(), number.tolist())]
    return pyarrow.table({
        "id": ids(rows), "name": names, "imdb_index": nulls(take(["I", "II", "III", "IV"], draw.below(4, rows)), draw.chance(0.6, rows)),
        "imdb_id": nulls(ids(rows), draw.chance(1, rows)), "gender": nulls(take(["m", "f", ""], gender), gender == 2), "name_pcode_cf": code(draw, rows),
        "name_pcode_nf": code(draw, rows), "surname_pcode": code(draw, rows), "md5sum": digests(rows),
    }), gender


def keywords(rows):
    """The known ones are spread over the more frequent quarter: of two of them the first is more frequent."""
    names = [f"keyword-{n}" for n in range(rows)]
    for n, word in enumerate(KEYWORDS):
        names[int((n + 1) ** 2 * rows / 4 / (len(KEYWORDS) + 1) ** 2) + n] = word
    return pyarrow.table({"id": ids(rows), "keyword": names, "phonetic_code": [f"{word[0].upper()}{n % 600:03}" for n, word in enumerate(names)]})


def companies(draw, rows):
    country = draw.zipf(len(COUNTRIES), rows, 1.0, scattered=False)
    words = ["Film", "Pictures", "Productions", "Television", "Video", "Media", "Studio", "Warner", "Entertainment", "Arts"]
    names = [COMPANIES[n] if n < len(COMPANIES) else f"{text} {n}" for n, text in enumerate(phrases(draw, rows, words, 3).to_pylist())]
    country[:len(COMPANIES)] = 0
    return pyarrow.table({
        "id": ids(rows), "name": names, "country_code": nulls(take([f"[{c}]" for c in COUNTRIES], country), draw.chance(0.05, rows)),
        "imdb_id": nulls(ids(rows), draw.chance(1, rows)), "name_pcode_nf": code(draw, rows), "name_pcode_sf": code(draw, rows), "md5sum": digests(rows),
    })


def characters(draw, rows):
    words = ["Himself", "Doctor", "Queen", "Woman", "Man", "Policeman", "Nurse", "Tony Stark", "Iron Man", "Sherlock", "Batman", "Boy", "Girl",
             "Teacher", "Narrator", "Host"]
    return pyarrow.table({
        "id": ids(rows), "name": phrases(draw, rows, words, 2), "imdb_index": nulls(take(["I"], draw.below(1, rows)), draw.chance(1, rows)),
        "imdb_id": nulls(ids(rows), draw.chance(1, rows)), "name_pcode_nf": code(draw, rows), "surname_pcode": code(draw, rows), "md5sum": digests(rows),
    })


def cast(draw, film, gender, figures):
    """A few people have many roles; actresses are women, and notes say what a role was."""
    rows = len(film)
    person = draw.zipf(len(gender), rows, 0.75)
    crew = draw.chance(0.35, rows)
    role = numpy.where(crew, draw.random.choice([3, 4, 5, 6, 7, 8, 9, 10, 11], rows, p=[.2, .25, .05, .1, .02, .13, .08, .15, .02]),
                       numpy.where(gender[person] == 1, 2, 1))
    notes = ["(voice)", "(voice: Japanese version)", "(voice) (uncredited)", "(voice: English version)", "(uncredited)", "(as himself)",
             "(credit only)", "(producer)", "(executive producer)", "(co-producer)", "(writer)", "(head writer)", "(written by)", "(story)",
             "(story editor)", "(screenplay)", "(assistant)"]
    acts, makes, writes = draw.below(7, rows), 7 + draw.below(3, rows), 10 + draw.below(6, rows)
    note = numpy.where(role <= 2, acts, numpy.where(role == 3, makes, numpy.where(role == 4, writes, 16)))
    note = numpy.where(draw.chance(0.02, rows), draw.below(len(notes), rows), note)
    silent = draw.chance(numpy.where(role <= 2, 0.8, 0.2), rows)
    return pyarrow.table({
        "id": ids(rows), "person_id": (person + 1).astype("int32"), "movie_id": (film + 1).astype("int32"),
        "person_role_id": nulls((draw.zipf(figures, rows, 0.7) + 1).astype("int32"), draw.chance(numpy.where(role > 2, 0.97, 0.2), rows)),
        "note": nulls(take(notes, note), silent), "nr_order": nulls(draw.zipf(100, rows, 0.8, scattered=False).astype("int32"), role > 2),
        "role_id": role.astype("int32"),
    })


def tagged(draw, film, words):
    word = draw.zipf(words, len(film), 0.85, scattered=False)
    return pyarrow.table({"id": ids(len(film)), "movie_id": (film + 1).astype("int32"), "keyword_id": (word + 1).astype("int32")})


def backed(draw, film, year, firms):
    rows = len(film)
    makes = draw.chance(0.45, rows)
    lands, means = ["USA", "worldwide", "France", "Japan", "Germany", "UK"], ["theatrical", "TV", "VHS", "DVD", "Blu-ray", "video"]
    made = ["(co-production)", "(presents)", "(in association with)", "(as Metro-Goldwyn-Mayer Pictures)", "(as Metro-Goldwyn-Mayer Pictures) (presents)"]
    texts = [f"({y}) ({land}) ({mean})" for y in range(1890, 2017) for land in lands for mean in means] + made
    shown = numpy.where(draw.chance(0.15, rows), 1980 + draw.below(36, rows), year[film])
    where = (shown.clip(1890, 2016) - 1890) * 36 + draw.zipf(6, rows, 0.8, scattered=False) * 6 + draw.zipf(6, rows, 0.5, scattered=False)
    how = len(texts) - len(made) + draw.zipf(len(made), rows, 0.5, scattered=False)
    note = numpy.where(makes & draw.chance(0.8, rows), how, where)
    return pyarrow.table({
        "id": ids(rows), "movie_id": (film + 1).astype("int32"), "company_id": (draw.zipf(firms, rows, 0.8, scattered=False) + 1).astype("int32"),
        "company_type_id": numpy.where(makes, 2, 1).astype("int32"), "note": nulls(take(texts, note), draw.chance(numpy.where(makes, 0.7, 0.15), rows)),
    })


def informed(draw, film, year):
    """What is said of films: the kind of information decides the text."""
    rows = len(film)
    kinds = numpy.array([1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 98, 105, 107])
    kind = draw.random.choice(kinds, rows, p=[.08, .08, .13, .09, .1, .04, .05, .09, .06, .18, .05, .02, .02, .01])
    months = ["January", "May", "July", "November"]
    texts, begin = [], {}

    def listed(number, values):
        begin[number] = len(texts)
        texts.extend(values)
        return len(values)

    ends = {1: listed(1, [str(n) for n in range(1, 240)]), 2: listed(2, ["Color", "Black and White"]), 3: listed(3, GENRES), 4: listed(4, TONGUES),
            8: listed(8, LANDS), 105: listed(105, [f"${n},000,000" for n in range(1, 200)]), 107: listed(107, [f"${n},500,000" for n in range(1, 900)]),
            0: listed(0, [f"text {n} of some words" for n in range(20_000)])}
    listed(16, [f"{land}:{day} {month} {y}" for y in range(1890, 2017) for land in LANDS for month in months for day in (3, 17)])
    which = numpy.zeros(rows, dtype=int)
    for number in (*ends, 16):
        here = numpy.isin(kind, [n for n in kinds if n not in begin]) if number == 0 else kind == number
        if number == 16:
            own = (year[film[here]].clip(1890, 2016) - 1890) * len(LANDS) * 8 + draw.zipf(len(LANDS), here.sum(), 0.9, scattered=False) * 8 + draw.below(8, here.sum())
        else:
            own = draw.zipf(ends[number], here.sum(), 0.7, scattered=False)
        which[here] = begin[number] + own
    note = nulls(take(["(internet)", "(premiere)", "(re-release)"], draw.below(3, rows)), (kind != 16) | draw.chance(0.7, rows))
    return pyarrow.table({"id": ids(rows), "movie_id": (film + 1).astype("int32"), "info_type_id": kind.astype("int32"),
                          "info": take(texts, which), "note": note})


def rated(draw, rank):
    """Votes and ratings of the more popular half, in the order of films; ranks of a few."""
    voted = numpy.sort(rank[:len(rank) // 2])
    votes = (5 + 100_000 / (1 + draw.zipf(len(voted), len(voted), 0.5))).astype(int)
    rating = numpy.clip(6.4 + draw.random.normal(0, 1.8, len(voted)), 1.0, 9.9)
    best, worst = rank[:250], rank[300:310]
    film = numpy.concatenate([numpy.repeat(voted, 3), best, worst])
    kind = numpy.concatenate([numpy.tile([99, 100, 101], len(voted)), numpy.full(len(best), 112), numpy.full(len(worst), 113)])
    info = [text for v, r in zip(votes.tolist(), rating.tolist()) for text in (f"{v % 10 ** 9:010}", str(v), f"{r:.1f}")]
    info += [str(n + 1) for n in (*range(len(best)), *range(len(worst)))]
    return pyarrow.table({"id": ids(len(film)), "movie_id": (film + 1).astype("int32"), "info_type_id": kind.astype("int32"), "info": info,
                          "note": nulls(take([""], numpy.zeros(len(film), dtype=int)), numpy.ones(len(film), dtype=bool))})


def also(draw, film, kind, year):
    rows = len(film)
    return pyarrow.table({
        "id": ids(rows), "movie_id": (film + 1).astype("int32"), "title": phrases(draw, rows, WORDS), "kind_id": (kind[film] + 1).astype("int32"),
        "production_year": year[film], "phonetic_code": code(draw, rows), "note": take(["(International: English title)", "(working title)", ""], draw.below(3, rows)),
    })


def linked(draw, film, other, kind, rank):
    """Most refer to a film of the same kind."""
    same = draw.chance(0.7, len(film))
    for number in range(len(KINDS)):
        alike, here = rank[kind[rank] == number], same & (kind[film] == number)
        if len(alike):
            other[here] = alike[draw.zipf(len(alike), here.sum(), 0.6, scattered=False)]
    return pyarrow.table({"id": ids(len(film)), "movie_id": (film + 1).astype("int32"), "linked_movie_id": (other + 1).astype("int32"),
                          "link_type_id": (draw.zipf(18, len(film), 0.8, scattered=False) + 1).astype("int32")})


def completed(draw, film):
    rows = len(film)
    return pyarrow.table({"id": ids(rows), "movie_id": (film + 1).astype("int32"), "subject_id": (draw.below(2, rows) + 1).astype("int32"),
                          "status_id": numpy.where(draw.chance(0.7, rows), 4, 3).astype("int32")})


def renamed(draw, rows, people):
    names = [f"{LAST[a]}, {FIRST[b]} {n}" for a, b, n in zip(draw.below(len(LAST), rows), draw.below(len(FIRST), rows), draw.below(rows, rows))]
    return pyarrow.table({
        "id": ids(rows), "person_id": (draw.zipf(people, rows, 0.6) + 1).astype("int32"), "name": names, "name_pcode_cf": code(draw, rows),
        "name_pcode_nf": code(draw, rows), "surname_pcode": code(draw, rows), "md5sum": digests(rows),
    })


def lives(draw, rows, people):
    kind = draw.random.choice([17, 19, 21, 22], rows, p=[0.3, 0.2, 0.3, 0.2])
    biography = kind == 19
    info = take([f"text {n}" for n in range(50_000)], draw.below(50_000, rows))
    note = nulls(take(["Volker Boehm", "Anonymous", "Jon C. Hopwood", "Pedro Borges"], draw.zipf(4, rows, 0.5, scattered=False)), ~biography)
    return pyarrow.table({"id": ids(rows), "person_id": (draw.zipf(people, rows, 0.6) + 1).astype("int32"), "info_type_id": kind.astype("int32"),
                          "info": info, "note": note})


QUERIES = queries()
