"""The 113 queries of the Join Order Benchmark, in 33 families: tables, what is selected, and the conditions of each variant.
A family's joins follow from its tables: all that know a film are equal by it, each pair of them, as the benchmark writes it;
so are all that know a person; and keys of the small tables are looked up."""

NAMES = {
    "an": "aka_name", "aka": "aka_title", "cc": "complete_cast", "cct1": "comp_cast_type", "cct2": "comp_cast_type", "chn": "char_name",
    "ci": "cast_info", "cn": "company_name", "ct": "company_type", "it": "info_type", "it1": "info_type", "it2": "info_type",
    "it3": "info_type", "k": "keyword", "kt": "kind_type", "lt": "link_type", "mc": "movie_companies", "mi": "movie_info",
    "mi_idx": "movie_info_idx", "mk": "movie_keyword", "ml": "movie_link", "n": "name", "pi": "person_info", "rt": "role_type", "t": "title",
}
FILM = {"t": "id", "mc": "movie_id", "mk": "movie_id", "mi": "movie_id", "mi_idx": "movie_id", "ci": "movie_id", "cc": "movie_id",
        "ml": "movie_id", "aka": "movie_id"}
PERSON = {"n": "id", "ci": "person_id", "an": "person_id", "pi": "person_id"}
LOOKED_UP = {"cn": "mc.company_id", "ct": "mc.company_type_id", "k": "mk.keyword_id", "kt": "t.kind_id", "rt": "ci.role_id",
             "chn": "ci.person_role_id", "lt": "ml.link_type_id", "cct1": "cc.subject_id", "cct2": "cc.status_id"}


def pairs(aliases, columns):
    known = [f"{alias}.{columns[alias]}" for alias in aliases if alias in columns]
    return [f"{one} = {other}" for n, one in enumerate(known) for other in known[n + 1:]]


def family(number, tables, select, variants, linked="movie_id"):
    """`it1=mi` among the tables is a kind of information with the table that refers to it."""
    aliases = [part.partition("=")[0] for part in tables.split()]
    lookups = dict(LOOKED_UP) | {alias: f"{of}.info_type_id" for alias, _, of in (part.partition("=") for part in tables.split()) if of}
    joins = pairs(aliases, FILM | {"ml": linked}) + pairs(aliases, PERSON)
    joins += [f"{alias}.id = {lookups[alias]}" for alias in aliases if alias in lookups]
    source = ", ".join(f"{NAMES[alias]} as {alias}" for alias in aliases)
    least = ", ".join(f"min({column})" for column in select.split())
    return {f"{number}{letter}": f"select {least} from {source} where {' and '.join([condition, *joins])}"
            for letter, condition in variants.items()}


def likes(column, *patterns):
    return "(" + " or ".join(f"{column} like '{pattern}'" for pattern in patterns) + ")"


def among(column, values):
    return f"{column} in (" + ", ".join(f"'{value}'" for value in values.split("|")) + ")"


NORTH = "Sweden|Norway|Germany|Denmark|Swedish|Denish|Norwegian|German"
MGM = "mc.note not like '%(as Metro-Goldwyn-Mayer Pictures)%'"
HEROES = among("k.keyword", "superhero|sequel|second-part|marvel-comics|based-on-comic|tv-special|fight|violence")
MORE_HEROES = among("k.keyword", "superhero|marvel-comics|based-on-comic|tv-special|fight|violence|magnet|web|claw|laser")
DOWNEY = "n.name like '%Downey%Robert%'"
VOICES = among("ci.note", "(voice)|(voice: Japanese version)|(voice) (uncredited)|(voice: English version)")
WRITERS = among("ci.note", "(writer)|(head writer)|(written by)|(story)|(story editor)")
SPREAD = "mc.note is not null and " + likes("mc.note", "%(USA)%", "%(worldwide)%")
MAKERS = "cn.country_code <> '[pl]' and " + likes("cn.name", "%Film%", "%Warner%")
MURDER = among("k.keyword", "murder|murder-in-title|blood|violence")
GORE = among("k.keyword", "murder|violence|blood|gore|death|female-nudity|hospital")
SIX = among("mi.info", "Horror|Action|Sci-Fi|Thriller|Crime|War")
FOLLOW = "lt.link like '%follow%'"
SEQUEL = f"{MAKERS} and ct.kind = 'production companies' and k.keyword = 'sequel' and {FOLLOW} and mc.note is null"
LATE = "mi.info is not null and " + likes("mi.info", "USA:% 199%", "USA:% 200%")
SLASHERS = likes("t.title", "%Freddy%", "%Jason%", "Saw%")
NOT_US = "cn.country_code <> '[us]' and it1.info = 'countries' and it2.info = 'rating'"
ABROAD = "mc.note not like '%(USA)%' and mc.note like '%(200%)%'"
BOTH = "kt.kind in ('movie', 'episode')"
TEN = among("mi.info", NORTH + "|USA|American")


def year(begin, end=None):
    return f"t.production_year between {begin} and {end}" if end else f"t.production_year > {begin}"


def few():
    """Families 1 to 6: up to five tables."""
    made, rank = "ct.kind = 'production companies' and it.info = '{} rank'", "mc.note t.title t.production_year"
    found = family(1, "ct it=mi_idx mc mi_idx t", rank, {
        "a": f"{made.format('top 250')} and {MGM} and {likes('mc.note', '%(co-production)%', '%(presents)%')}",
        "b": f"{made.format('bottom 10')} and {MGM} and {year(2005, 2010)}",
        "c": f"{made.format('top 250')} and {MGM} and mc.note like '%(co-production)%' and {year(2010)}",
        "d": f"{made.format('bottom 10')} and {MGM} and {year(2000)}"})
    found |= family(2, "cn k mc mk t", "t.title", {
        letter: f"cn.country_code = '[{country}]' and k.keyword = 'character-name-in-title'"
        for letter, country in zip("abcd", ("de", "nl", "sm", "us"))})
    found |= family(3, "k mi mk t", "t.title", {
        "a": f"k.keyword like '%sequel%' and {among('mi.info', NORTH)} and {year(2005)}",
        "b": f"k.keyword like '%sequel%' and mi.info in ('Bulgaria') and {year(2010)}",
        "c": f"k.keyword like '%sequel%' and {TEN} and {year(1990)}"})
    found |= family(4, "it=mi_idx k mi_idx mk t", "mi_idx.info t.title", {
        letter: f"it.info = 'rating' and k.keyword like '%sequel%' and mi_idx.info > '{rating}' and {year(begin)}"
        for letter, rating, begin in (("a", "5.0", 2005), ("b", "9.0", 2010), ("c", "2.0", 1990))})
    found |= family(5, "ct it=mi mc mi t", "t.title", {
        "a": f"ct.kind = 'production companies' and mc.note like '%(theatrical)%' and mc.note like '%(France)%' and {among('mi.info', NORTH)} and {year(2005)}",
        "b": f"ct.kind = 'production companies' and mc.note like '%(VHS)%' and mc.note like '%(USA)%' and mc.note like '%(1994)%' and mi.info in ('USA', 'America') and {year(2010)}",
        "c": f"ct.kind = 'production companies' and mc.note not like '%(TV)%' and mc.note like '%(USA)%' and {TEN} and {year(1990)}"})
    marvel = "k.keyword = 'marvel-cinematic-universe'"
    return found | family(6, "ci k mk n t", "k.keyword n.name t.title", {
        "a": f"{marvel} and {DOWNEY} and {year(2010)}", "b": f"{HEROES} and {DOWNEY} and {year(2014)}", "c": f"{marvel} and {DOWNEY} and {year(2014)}",
        "d": f"{HEROES} and {DOWNEY} and {year(2000)}", "e": f"{marvel} and {DOWNEY} and {year(2000)}", "f": f"{HEROES} and {year(2000)}"})


def people():
    """Families 7 to 10: people and what they did."""
    life = "an.name like '%a%' and it.info = 'mini biography' and n.name_pcode_cf between 'A' and 'F'"
    found = family(7, "an ci it=pi lt ml n pi t", "n.name t.title", {
        "a": f"{life} and lt.link = 'features' and (n.gender = 'm' or (n.gender = 'f' and n.name like 'B%')) and pi.note = 'Volker Boehm' and {year(1980, 1995)}",
        "b": f"{life} and lt.link = 'features' and n.name_pcode_cf like 'D%' and n.gender = 'm' and pi.note = 'Volker Boehm' and {year(1980, 1984)}",
        "c": f"""an.name is not null and (an.name like '%a%' or an.name like 'A%') and it.info = 'mini biography' and lt.link in ('references', 'referenced in',
            'features', 'featured in') and n.name_pcode_cf between 'A' and 'F' and (n.gender = 'm' or (n.gender = 'f' and n.name like 'A%'))
            and pi.note is not null and {year(1980, 2010)}"""}, linked="linked_movie_id")
    japan = """ci.note = '(voice: English version)' and cn.country_code = '[jp]' and mc.note like '%(Japan)%' and mc.note not like '%(USA)%'
        and n.name like '%Yo%' and n.name not like '%Yu%' and rt.role = 'actress'"""
    found |= family(8, "an ci cn mc n rt t", "an.name t.title", {
        "a": japan,
        "b": f"{japan} and {likes('mc.note', '%(2006)%', '%(2007)%')} and {year(2006, 2007)} and {likes('t.title', 'One Piece%', 'Dragon Ball Z%')}",
        "c": "cn.country_code = '[us]' and rt.role = 'writer'", "d": "cn.country_code = '[us]' and rt.role = 'costume designer'"})
    woman = "cn.country_code = '[us]' and n.gender = 'f' and rt.role = 'actress'"
    found |= family(9, "an chn ci cn mc n rt t", "an.name chn.name t.title", {
        "a": f"{VOICES} and {woman} and {SPREAD} and n.name like '%Ang%' and {year(2005, 2015)}",
        "b": f"ci.note = '(voice)' and {woman} and mc.note like '%(200%)%' and {SPREAD} and n.name like '%Angel%' and {year(2007, 2010)}",
        "c": f"{VOICES} and {woman} and n.name like '%An%'", "d": f"{VOICES} and {woman}"})
    return found | family(10, "chn ci cn ct mc rt t", "chn.name t.title", {
        "a": f"ci.note like '%(voice)%' and ci.note like '%(uncredited)%' and cn.country_code = '[ru]' and rt.role = 'actor' and {year(2005)}",
        "b": f"ci.note like '%(producer)%' and cn.country_code = '[ru]' and rt.role = 'actor' and {year(2010)}",
        "c": f"ci.note like '%(producer)%' and cn.country_code = '[us]' and {year(1990)}"})


def companies():
    """Families 11 to 15: companies, ratings and dates."""
    found = family(11, "cn ct k lt mc mk ml t", "cn.name lt.link t.title", {
        "a": f"{SEQUEL} and {year(1950, 2000)}",
        "b": f"{SEQUEL} and t.production_year = 1998 and t.title like '%Money%'",
        "c": f"""cn.country_code <> '[pl]' and {likes('cn.name', '20th Century Fox%', 'Twentieth Century Fox%')} and ct.kind <> 'production companies'
            and ct.kind is not null and {among('k.keyword', 'sequel|revenge|based-on-novel')} and mc.note is not null and {year(1950)}""",
        "d": f"""cn.country_code <> '[pl]' and ct.kind <> 'production companies' and ct.kind is not null
            and {among('k.keyword', 'sequel|revenge|based-on-novel')} and mc.note is not null and {year(1950)}"""})
    scored = "cn.country_code = '[us]' and ct.kind = 'production companies' and it1.info = 'genres' and it2.info = 'rating'"
    found |= family(12, "cn ct it1=mi it2=mi_idx mc mi mi_idx t", "cn.name mi_idx.info t.title", {
        "a": f"{scored} and {among('mi.info', 'Drama|Horror')} and mi_idx.info > '8.0' and {year(2005, 2008)}",
        "b": f"""cn.country_code = '[us]' and ct.kind in ('production companies', 'distributors') and it1.info = 'budget'
            and it2.info = 'bottom 10 rank' and {year(2000)} and {likes('t.title', 'Birdemic%', '%Movie%')}""",
        "c": f"{scored} and {among('mi.info', 'Drama|Horror|Western|Family')} and mi_idx.info > '7.0' and {year(2000, 2010)}"})
    made = "ct.kind = 'production companies' and it.info = 'rating' and it2.info = 'release dates' and kt.kind = 'movie' and cn.country_code"
    found |= family(13, "cn ct it=mi_idx it2=mi kt mc mi mi_idx t", "mi.info mi_idx.info t.title", {
        "a": f"{made} = '[de]'", "b": f"{made} = '[us]' and t.title <> '' and {likes('t.title', '%Champion%', '%Loser%')}",
        "c": f"{made} = '[us]' and t.title <> '' and {likes('t.title', 'Champion%', 'Loser%')}", "d": f"{made} = '[us]'"})
    lands = "it1.info = 'countries' and it2.info = 'rating'"
    found |= family(14, "it1=mi it2=mi_idx k kt mi mi_idx mk t", "mi_idx.info t.title", {
        "a": f"{lands} and {MURDER} and kt.kind = 'movie' and {TEN} and mi_idx.info < '8.5' and {year(2010)}",
        "b": f"""{lands} and k.keyword in ('murder', 'murder-in-title') and kt.kind = 'movie' and {TEN} and mi_idx.info > '6.0' and {year(2010)}
            and {likes('t.title', '%murder%', '%Murder%', '%Mord%')}""",
        "c": f"{lands} and k.keyword is not null and {MURDER} and {BOTH} and {TEN} and mi_idx.info < '8.5' and {year(2005)}"})
    net = "cn.country_code = '[us]' and it1.info = 'release dates' and mi.note like '%internet%'"
    wide = "mc.note like '%(200%)%' and mc.note like '%(worldwide)%' and mi.info like 'USA:% 200%'"
    return found | family(15, "aka cn ct it1=mi k mc mi mk t", "mi.info t.title", {
        "a": f"{net} and {wide} and {year(2000)}", "b": f"{net} and cn.name = 'YouTube' and {wide} and {year(2005, 2010)}",
        "c": f"{net} and {LATE} and {year(1990)}", "d": f"{net} and {year(1990)}"})


def characters():
    """Families 16 to 20."""
    named = "k.keyword = 'character-name-in-title'"
    american = f"cn.country_code = '[us]' and {named}"
    found = family(16, "an ci cn k mc mk n t", "an.name t.title", {
        "a": f"{american} and t.episode_nr >= 50 and t.episode_nr < 100", "b": american, "c": f"{american} and t.episode_nr < 100",
        "d": f"{american} and t.episode_nr >= 5 and t.episode_nr < 100"})
    found |= family(17, "ci cn k mc mk n t", "n.name", {
        "a": f"{american} and n.name like 'B%'", "b": f"{named} and n.name like 'Z%'", "c": f"{named} and n.name like 'X%'",
        "d": f"{named} and n.name like '%Bert%'", "e": american, "f": f"{named} and n.name like '%B%'"})
    found |= family(18, "ci it1=mi it2=mi_idx mi mi_idx n t", "mi.info mi_idx.info t.title", {
        "a": "ci.note in ('(producer)', '(executive producer)') and it1.info = 'budget' and it2.info = 'votes' and n.gender = 'm' and n.name like '%Tim%'",
        "b": f"""{WRITERS} and it1.info = 'genres' and it2.info = 'rating' and mi.info in ('Horror', 'Thriller') and mi.note is null
            and mi_idx.info > '8.0' and n.gender is not null and n.gender = 'f' and {year(2008, 2014)}""",
        "c": f"{WRITERS} and it1.info = 'genres' and it2.info = 'votes' and {SIX} and n.gender = 'm'"})
    woman = "cn.country_code = '[us]' and it.info = 'release dates' and n.gender = 'f' and rt.role = 'actress'"
    early = "mi.info is not null and " + likes("mi.info", "Japan:%200%", "USA:%200%")
    found |= family(19, "an chn ci cn it=mi mc mi n rt t", "n.name t.title", {
        "a": f"{VOICES} and {woman} and {SPREAD} and {early} and n.name like '%Ang%' and {year(2005, 2009)}",
        "b": f"""ci.note = '(voice)' and {woman} and mc.note like '%(200%)%' and {SPREAD} and mi.info is not null
            and {likes('mi.info', 'Japan:%2007%', 'USA:%2008%')} and n.name like '%Angel%' and {year(2007, 2008)} and t.title like '%Kung%Fu%Panda%'""",
        "c": f"{VOICES} and {woman} and {early} and n.name like '%An%' and {year(2000)}", "d": f"{VOICES} and {woman} and {year(2000)}"})
    whole = "cct1.kind = 'cast' and cct2.kind like '%complete%' and kt.kind = 'movie'"
    stark = "chn.name not like '%Sherlock%' and " + likes("chn.name", "%Tony%Stark%", "%Iron%Man%")
    return found | family(20, "cc cct1 cct2 chn ci k kt mk n t", "t.title", {
        "a": f"{whole} and {stark} and {HEROES} and {year(1950)}", "b": f"{whole} and {stark} and {HEROES} and {DOWNEY} and {year(2000)}",
        "c": f"{whole} and chn.name is not null and {likes('chn.name', '%man%', '%Man%')} and {MORE_HEROES} and {year(2000)}"})


def wider():
    """Families 21 to 25: nine to twelve tables."""
    found = family(21, "cn ct k lt mc mi mk ml t", "cn.name lt.link t.title", {
        "a": f"{SEQUEL} and {among('mi.info', NORTH)} and {year(1950, 2000)}", "b": f"{SEQUEL} and mi.info in ('Germany', 'German') and {year(2000, 2010)}",
        "c": f"{SEQUEL} and {among('mi.info', NORTH + '|English')} and {year(1950, 2010)}"})
    four = among("mi.info", "Germany|German|USA|American")
    found |= family(22, "cn ct it1=mi it2=mi_idx k kt mc mi mi_idx mk t", "cn.name mi_idx.info t.title", {
        "a": f"{NOT_US} and {MURDER} and {BOTH} and {ABROAD} and {four} and mi_idx.info < '7.0' and {year(2008)}",
        "b": f"{NOT_US} and {MURDER} and {BOTH} and {ABROAD} and {four} and mi_idx.info < '7.0' and {year(2009)}",
        "c": f"{NOT_US} and {MURDER} and {BOTH} and {ABROAD} and {TEN} and mi_idx.info < '8.5' and {year(2005)}",
        "d": f"{NOT_US} and {MURDER} and {BOTH} and {TEN} and mi_idx.info < '8.5' and {year(2005)}"})
    done = "cct2.kind = 'complete+verified' and cn.country_code = '[us]' and it1.info = 'release dates' and mi.note like '%internet%'"
    found |= family(23, "cc cct2 cn ct it1=mi k kt mc mi mk t", "kt.kind t.title", {
        "a": f"{done} and kt.kind in ('movie') and {LATE} and {year(2000)}",
        "b": f"{done} and {among('k.keyword', 'nerd|loner|alienation|dignity')} and kt.kind in ('movie') and mi.info like 'USA:% 200%' and {year(2000)}",
        "c": f"{done} and {among('kt.kind', 'movie|tv movie|video movie|video game')} and {LATE} and {year(1990)}"})
    woman = "cn.country_code = '[us]' and it.info = 'release dates' and n.gender = 'f' and rt.role = 'actress' and n.name like '%An%'"
    recent = "mi.info is not null and " + likes("mi.info", "Japan:%201%", "USA:%201%")
    fights = "hero|martial-arts|hand-to-hand-combat"
    found |= family(24, "an chn ci cn it=mi k mc mi mk n rt t", "chn.name n.name t.title", {
        "a": f"{VOICES} and {woman} and {among('k.keyword', fights)} and {recent} and {year(2010)}",
        "b": f"""{VOICES} and {woman} and cn.name = 'DreamWorks Animation' and {among('k.keyword', fights + '|computer-animated-movie')} and {recent}
            and {year(2010)} and t.title like 'Kung Fu Panda%'"""})
    wrote = f"{WRITERS} and it1.info = 'genres' and it2.info = 'votes' and n.gender = 'm'"
    five = among("k.keyword", "murder|blood|gore|death|female-nudity")
    return found | family(25, "ci it1=mi it2=mi_idx k mi mi_idx mk n t", "mi.info mi_idx.info n.name t.title", {
        "a": f"{wrote} and {five} and mi.info = 'Horror'", "b": f"{wrote} and {five} and mi.info = 'Horror' and {year(2010)} and t.title like 'Vampire%'",
        "c": f"{wrote} and {GORE} and {SIX}"})


def widest():
    """Families 26 to 31: up to seventeen tables."""
    hero = f"cct1.kind = 'cast' and cct2.kind like '%complete%' and chn.name is not null and {likes('chn.name', '%man%', '%Man%')} and it2.info = 'rating' and kt.kind = 'movie'"
    found = family(26, "cc cct1 cct2 chn ci it2=mi_idx k kt mi_idx mk n t", "chn.name mi_idx.info n.name t.title", {
        "a": f"{hero} and {MORE_HEROES} and mi_idx.info > '7.0' and {year(2000)}",
        "b": f"{hero} and {among('k.keyword', 'superhero|marvel-comics|based-on-comic|fight')} and mi_idx.info > '8.0' and {year(2005)}",
        "c": f"{hero} and {MORE_HEROES} and {year(2000)}"})
    north = among("mi.info", "Sweden|Germany|Swedish|German")
    parts = "cct1.kind in ('cast', 'crew') and cct2.kind = 'complete'"
    found |= family(27, "cc cct1 cct2 cn ct k lt mc mi mk ml t", "cn.name lt.link t.title", {
        "a": f"{parts} and {SEQUEL} and {north} and {year(1950, 2000)}", "b": f"{parts} and {SEQUEL} and {north} and t.production_year = 1998",
        "c": f"cct1.kind = 'cast' and cct2.kind like 'complete%' and {SEQUEL} and {among('mi.info', NORTH + '|English')} and {year(1950, 2010)}"})
    crew = "cct1.kind = 'crew' and cct2.kind <> 'complete+verified'"
    found |= family(28, "cc cct1 cct2 cn ct it1=mi it2=mi_idx k kt mc mi mi_idx mk t", "cn.name mi_idx.info t.title", {
        "a": f"{crew} and {NOT_US} and {MURDER} and {BOTH} and {ABROAD} and {TEN} and mi_idx.info < '8.5' and {year(2000)}",
        "b": f"{crew} and {NOT_US} and {MURDER} and {BOTH} and {ABROAD} and {among('mi.info', 'Sweden|Germany|Swedish|German')} and mi_idx.info > '6.5' and {year(2005)}",
        "c": f"cct1.kind = 'cast' and cct2.kind = 'complete' and {NOT_US} and {MURDER} and {BOTH} and {ABROAD} and {TEN} and mi_idx.info < '8.5' and {year(2005)}"})
    drawn = f"""cct1.kind = 'cast' and cct2.kind = 'complete+verified' and {among('ci.note', '(voice)|(voice) (uncredited)|(voice: English version)')}
        and cn.country_code = '[us]' and it.info = 'release dates' and k.keyword = 'computer-animation' and n.gender = 'f' and rt.role = 'actress'
        and n.name like '%An%' and mi.info is not null and {year(2000, 2010)}"""
    shrek, dates = "chn.name = 'Queen' and t.title = 'Shrek 2'", likes("mi.info", "Japan:%200%", "USA:%200%")
    found |= family(29, "an cc cct1 cct2 chn ci cn it=mi it3=pi k mc mi mk n pi rt t", "chn.name n.name t.title", {
        "a": f"{drawn} and {shrek} and {dates} and it3.info = 'trivia'", "b": f"{drawn} and {shrek} and mi.info like 'USA:%200%' and it3.info = 'height'",
        "c": f"{drawn} and {dates} and it3.info = 'trivia'"})
    wrote = f"{WRITERS} and it1.info = 'genres' and it2.info = 'votes' and n.gender = 'm' and {GORE}"
    two, most = "mi.info in ('Horror', 'Thriller')", "cct1.kind in ('cast', 'crew') and cct2.kind = 'complete+verified'"
    found |= family(30, "cc cct1 cct2 ci it1=mi it2=mi_idx k mi mi_idx mk n t", "mi.info mi_idx.info n.name t.title", {
        "a": f"{most} and {wrote} and {two} and {year(2000)}", "b": f"{most} and {wrote} and {two} and {year(2000)} and {SLASHERS}",
        "c": f"cct1.kind = 'cast' and cct2.kind = 'complete+verified' and {wrote} and {SIX}"})
    lion = "cn.name like 'Lionsgate%'"
    return found | family(31, "ci cn it1=mi it2=mi_idx k mc mi mi_idx mk n t", "mi.info mi_idx.info n.name t.title", {
        "a": f"{wrote} and {lion} and {two}", "b": f"{wrote} and {lion} and {two} and mc.note like '%(Blu-ray)%' and {year(2000)} and {SLASHERS}",
        "c": f"{wrote} and {lion} and {SIX}"})


def two_films():
    """Families 32 and 33: a film and one that it refers to."""
    joined = """select min(lt.link), min(t1.title), min(t2.title) from keyword as k, link_type as lt, movie_keyword as mk, movie_link as ml, title as t1,
        title as t2 where k.keyword = '{}' and mk.keyword_id = k.id and t1.id = mk.movie_id and ml.movie_id = t1.id
        and ml.linked_movie_id = t2.id and lt.id = ml.link_type_id and mk.movie_id = t1.id"""
    both = """select min(cn1.name), min(cn2.name), min(mi_idx1.info), min(mi_idx2.info), min(t1.title), min(t2.title)
        from company_name as cn1, company_name as cn2, info_type as it1, info_type as it2, kind_type as kt1, kind_type as kt2, link_type as lt,
        movie_companies as mc1, movie_companies as mc2, movie_info_idx as mi_idx1, movie_info_idx as mi_idx2, movie_link as ml, title as t1,
        title as t2 where {} and it1.info = 'rating' and it2.info = 'rating' and lt.id = ml.link_type_id and t1.id = ml.movie_id
        and t2.id = ml.linked_movie_id and it1.id = mi_idx1.info_type_id and t1.id = mi_idx1.movie_id and kt1.id = t1.kind_id
        and cn1.id = mc1.company_id and t1.id = mc1.movie_id and ml.movie_id = mi_idx1.movie_id and ml.movie_id = mc1.movie_id
        and mi_idx1.movie_id = mc1.movie_id and it2.id = mi_idx2.info_type_id and t2.id = mi_idx2.movie_id and kt2.id = t2.kind_id
        and cn2.id = mc2.company_id and t2.id = mc2.movie_id and ml.linked_movie_id = mi_idx2.movie_id
        and ml.linked_movie_id = mc2.movie_id and mi_idx2.movie_id = mc2.movie_id"""
    series = "kt1.kind in ('tv series') and kt2.kind in ('tv series')"
    either = "kt1.kind in ('tv series', 'episode') and kt2.kind in ('tv series', 'episode')"
    links = "lt.link in ('sequel', 'follows', 'followed by')"
    return {
        "32a": joined.format("10,000-mile-club"), "32b": joined.format("character-name-in-title"),
        "33a": both.format(f"cn1.country_code = '[us]' and {series} and {links} and mi_idx2.info < '3.0' and t2.production_year between 2005 and 2008"),
        "33b": both.format(f"cn1.country_code = '[nl]' and {series} and {FOLLOW} and mi_idx2.info < '3.0' and t2.production_year = 2007"),
        "33c": both.format(f"cn1.country_code <> '[us]' and {either} and {links} and mi_idx2.info < '3.5' and t2.production_year between 2000 and 2010"),
    }


def queries():
    return few() | people() | companies() | characters() | wider() | widest() | two_films()
