use jiff::civil::date;
use proptest::prelude::*;

use super::*;

/// A Wednesday.
const TODAY: Date = date(2026, 11, 18);

fn found(text: &str) -> Option<(String, String, String)> {
    let span = DateSpan::find(text, TODAY)?;
    Some((span.first.to_string(), span.last.to_string(), span.written))
}

#[track_caller]
fn check(text: &str, first: &str, last: &str, written: &str) {
    let expected = (first.to_owned(), last.to_owned(), written.to_owned());
    assert_eq!(found(text), Some(expected), "{text}");
}

#[test]
fn days_are_relative_to_today() {
    check("What did we decide yesterday?", "2026-11-17", "2026-11-17", "yesterday");
    check("notes of today", "2026-11-18", "2026-11-18", "of today");
    check("who called last Friday", "2026-11-13", "2026-11-13", "last friday");
    check("the call on Wednesday", "2026-11-11", "2026-11-11", "on wednesday");
    check("3 days ago", "2026-11-15", "2026-11-15", "3 days ago");
}

#[test]
fn weeks_months_and_years_are_those_of_the_calendar() {
    check("meetings last week", "2026-11-09", "2026-11-15", "last week");
    check("this month's costs", "2026-11-01", "2026-11-30", "this month");
    check("spent last month", "2026-10-01", "2026-10-31", "last month");
    check("Last year, in short", "2025-01-01", "2025-12-31", "last year");
    check("two weeks ago", "2026-11-02", "2026-11-08", "two weeks ago");
    check("a year ago", "2025-01-01", "2025-12-31", "a year ago");
    check("in the past 10 days", "2026-11-08", "2026-11-18", "past 10 days");
}

#[test]
fn dates_are_read_as_they_are_written() {
    check("on 2025-03-04?", "2025-03-04", "2025-03-04", "on 2025-03-04");
    check("log 2025-03", "2025-03-01", "2025-03-31", "2025-03");
    check("in May 2025", "2025-05-01", "2025-05-31", "in may 2025");
    check("trip, Sept 2024", "2024-09-01", "2024-09-30", "sept 2024");
    check("4 March 2025", "2025-03-04", "2025-03-04", "4 march 2025");
    check("March 4th, 2025", "2025-03-04", "2025-03-04", "march 4th 2025");
    check("the 4th of March", "2026-03-04", "2026-03-04", "4th of march");
    check("on December 24", "2025-12-24", "2025-12-24", "on december 24");
    check("what happened in December", "2025-12-01", "2025-12-31", "in december");
    check("in 2024", "2024-01-01", "2024-12-31", "in 2024");
}

#[test]
fn spans_may_be_open() {
    let (min, max) = (Date::MIN.to_string(), Date::MAX.to_string());
    check("before March 2024", &min, "2024-02-29", "before march 2024");
    check("after March 2024", "2024-04-01", &max, "after march 2024");
    check("since 2025-03-04", "2025-03-04", &max, "since 2025-03-04");
    check("until yesterday", &min, "2026-11-17", "until yesterday");
    check("before 2020", &min, "2019-12-31", "before 2020");
}

#[test]
fn other_words_are_no_dates() {
    for text in [
        "",
        "may I ask",
        "march on",
        "port 2024",
        "the last one",
        "this is it",
        "before the release",
        "a week",
        "last 3",
        "2025-13-40",
        "20250304",
        "on call",
        "ago",
        "in",
        "5 ago",
        "v1-2-3",
        "last 99999999999999999999 days",
        "0 days ago",
        "1-2",
        "hier parken",
        "il y a",
        "vor der Tür",
        "назад",
    ] {
        assert_eq!(found(text), None, "{text}");
    }
}

#[test]
fn questions_may_be_in_german() {
    check("Was haben wir letzte Woche beschlossen?", "2026-11-09", "2026-11-15", "letzte woche");
    check("Was war am Freitag?", "2026-11-13", "2026-11-13", "am freitag");
    check("die Kosten im Mai 2025", "2025-05-01", "2025-05-31", "im mai 2025");
    check("Treffen vor zwei Wochen", "2026-11-02", "2026-11-08", "vor zwei wochen");
    check("Was galt vor März 2024?", &Date::MIN.to_string(), "2024-02-29", "vor märz 2024");
    check("Was war in der letzten Woche?", "2026-11-09", "2026-11-15", "in der letzten woche");
    assert_eq!(found("Wo ist das hier?"), None);
}

#[test]
fn questions_may_be_in_french() {
    check("Qui a appelé hier ?", "2026-11-17", "2026-11-17", "hier");
    check("les notes d'aujourd'hui", "2026-11-18", "2026-11-18", "aujourd");
    let last = "semaine dernière";
    check("la réunion de la semaine dernière", "2026-11-09", "2026-11-15", last);
    check("les dépenses en mai 2025", "2025-05-01", "2025-05-31", "en mai 2025");
    check("le voyage il y a deux mois", "2026-09-01", "2026-09-30", "il y a deux mois");
    check("le 4 mars 2025", "2025-03-04", "2025-03-04", "le 4 mars 2025");
    let max = Date::MAX.to_string();
    check("ce qui a changé depuis mars 2024", "2024-03-01", &max, "depuis mars 2024");
}

#[test]
fn questions_may_be_in_spanish() {
    check("¿Qué decidimos ayer?", "2026-11-17", "2026-11-17", "ayer");
    check("la reunión de la semana pasada", "2026-11-09", "2026-11-15", "semana pasada");
    check("¿Qué pasó el viernes pasado?", "2026-11-13", "2026-11-13", "el viernes pasado");
    check("los gastos en mayo de 2025", "2025-05-01", "2025-05-31", "en mayo de 2025");
    check("hace dos semanas que lo dije", "2026-11-02", "2026-11-08", "hace dos semanas");
    check("el 4 de marzo de 2025", "2025-03-04", "2025-03-04", "el 4 de marzo de 2025");
    let min = Date::MIN.to_string();
    check("los planes antes de marzo de 2024", &min, "2024-02-29", "antes de marzo de 2024");
}

#[test]
fn questions_may_be_in_russian() {
    check("что мы решили вчера", "2026-11-17", "2026-11-17", "вчера");
    check("встреча на прошлой неделе", "2026-11-09", "2026-11-15", "на прошлой неделе");
    check("расходы в мае 2025 года", "2025-05-01", "2025-05-31", "в мае 2025");
    check("звонок две недели назад", "2026-11-02", "2026-11-08", "две недели назад");
    check("неделю назад", "2026-11-09", "2026-11-15", "неделю назад");
    check("4 марта 2025", "2025-03-04", "2025-03-04", "4 марта 2025");
    check("в пятницу", "2026-11-13", "2026-11-13", "в пятницу");
}

#[test]
fn questions_may_be_in_chinese() {
    check("我们昨天决定了什么", "2026-11-17", "2026-11-17", "昨天");
    check("上周的会议", "2026-11-09", "2026-11-15", "上周");
    check("上个月的费用", "2026-10-01", "2026-10-31", "上个月");
    check("2025年5月的费用", "2025-05-01", "2025-05-31", "2025年5月");
    check("2025年3月4日谁来了", "2025-03-04", "2025-03-04", "2025年3月4日");
    check("三天前的电话", "2026-11-15", "2026-11-15", "三天前");
    check("两周前", "2026-11-02", "2026-11-08", "两周前");
    check("十二月", "2025-12-01", "2025-12-31", "十二月");
    check("2024年3月之前的计划", &Date::MIN.to_string(), "2024-02-29", "2024年3月之前");
}

#[test]
fn questions_may_be_in_japanese() {
    check("昨日は何を決めましたか", "2026-11-17", "2026-11-17", "昨日");
    check("先週の会議", "2026-11-09", "2026-11-15", "先週");
    check("2025年5月の費用", "2025-05-01", "2025-05-31", "2025年5月");
    check("3日前の電話", "2026-11-15", "2026-11-15", "3日前");
    check("2週間前", "2026-11-02", "2026-11-08", "2週間前");
    check("金曜日の予定", "2026-11-13", "2026-11-13", "金曜日");
    check("2024年3月以降の変更", "2024-03-01", &Date::MAX.to_string(), "2024年3月以降");
}

#[test]
fn other_characters_are_no_dates() {
    for text in
        ["お茶", "第三章", "13月", "2025年13月", "前", "三", "日前", "0日前", "99999999999年"]
    {
        assert_eq!(found(text), None, "{text}");
    }
}

#[test]
fn titles_and_paths_have_dates() {
    for text in [
        "/journal/2025-03-04.md",
        "/2025/03/04.md",
        "Standup, 4 March 2025",
        "March 4, 2025",
        "2025-03-04T10:00:00Z",
        "call-2025-03-04",
        "2025-03-04-standup",
    ] {
        assert_eq!(written_date(text), Some(date(2025, 3, 4)), "{text}");
    }
    assert_eq!(written_date("2025-03"), Some(date(2025, 3, 1)));
    assert_eq!(written_date("Budget May 2025"), Some(date(2025, 5, 1)));
    for text in ["", "notes", "March 4", "2025", "12/03/04", "10.0.0.1"] {
        assert_eq!(written_date(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn every_text_is_read(text in "(last|past|in|before|ago|may|20[0-9]{2}|[0-9]{1,4}|days|week|-|é|vor|il y a|semaine|passé|назад|неделю|三|月|年|前|上周| ){0,12}") {
        if let Some(span) = DateSpan::find(&text, TODAY) {
            prop_assert!(span.first <= span.last);
        }
        written_date(&text);
    }
}
