//! Dates in languages that separate words: English, and what is put into English.

use jiff::civil::Date;

use super::{Bound, Days, around, number, span, weekday};
use crate::tokenizer::Language;

/// Words of another language for those of English, whose grammar is read.
struct Vocabulary {
    language: Language,
    /// What English says after a number of days, and this language before it.
    ago: &'static [&'static str],
    /// Each English word and its translations. Those of the empty one are left out.
    words: &'static [(&'static str, &'static [&'static str])],
}

/// A word that was put into English, and the place of the word that it was read from.
type Translated<'t> = (&'t str, usize);

/// Returns the first span of days in a text in lower case, and the words that mean it.
pub(super) fn find(lower: &str, today: Date) -> Option<(Days, String)> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '-';
    let words: Vec<&str> =
        lower.split(|letter| !is_part(letter)).filter(|word| !word.is_empty()).collect();
    let translated = match Vocabulary::of(&words) {
        Some(vocabulary) => vocabulary.translated(&words),
        None => words.iter().copied().zip(0..).collect(),
    };
    let english: Vec<&str> = translated.iter().map(|(word, _)| *word).collect();
    for start in 0..english.len() {
        let rest = english.get(start..).unwrap_or_default();
        if let Some((days, count)) = span(rest, today) {
            let places = translated.get(start..start + count).unwrap_or_default();
            let places = || places.iter().map(|(_, place)| *place);
            let (first, last) = (places().min()?, places().max()?);
            return Some((days, words.get(first..=last)?.join(" ")));
        }
    }
    None
}

impl Vocabulary {
    /// Returns the vocabulary of the language that some words seem to be in; `None` if that is English.
    ///
    /// Short words say nothing, unless they are stop words: `hier` is yesterday in French and here in German.
    fn of(words: &[&str]) -> Option<&'static Self> {
        let stop_words =
            |language: Language| words.iter().filter(|word| language.is_stop_word(word)).count();
        // Short ones decide between languages that have the same stop words, such as `en` and `de`.
        let evidence = |it: &Self| {
            let known = words.iter().filter(|word| it.word(word).is_some());
            let long = known.clone().filter(|word| word.len() > 4);
            (stop_words(it.language) + long.count(), known.count())
        };
        // Of equal ones the first.
        let best = ALL.iter().rev().map(|it| (evidence(it), it)).max_by_key(|(count, _)| *count);
        let ((count, _), best) = best?;
        // English words stay as they are, so a tie does no harm.
        (count > 0 && count >= stop_words(Language::English)).then_some(best)
    }

    fn word(&self, word: &str) -> Option<&'static str> {
        let found = self.words.iter().find(|(_, translations)| translations.contains(&word));
        found.map(|(english, _)| *english)
    }

    /// Puts words into English. Words that have nothing to do with dates stay as they are.
    fn translated<'t>(&self, words: &[&'t str]) -> Vec<Translated<'t>> {
        let mut translated: Vec<Translated<'t>> = Vec::with_capacity(words.len());
        let mut place = 0;
        while let Some(rest) = words.get(place..).filter(|rest| !rest.is_empty()) {
            let count = self.ago(rest, place, &mut translated);
            if count > 0 {
                place += count;
                continue;
            }
            let Some(word) = rest.first() else { break };
            add(self.word(word).unwrap_or(word), place, &mut translated);
            place += 1;
        }
        translated
    }

    /// Adds `two weeks ago` if that is what some words begin with; returns how many of these it is.
    fn ago<'t>(
        &self,
        words: &[&'t str],
        place: usize,
        translated: &mut Vec<Translated<'t>>,
    ) -> usize {
        let count = self.ago.len();
        let Some((count_word, unit)) = words.get(count).zip(words.get(count + 1)) else { return 0 };
        let count_word = self.word(count_word).unwrap_or(count_word);
        let Some(unit) = self.word(unit).filter(|unit| is_unit(unit)) else { return 0 };
        if count == 0 || !words.starts_with(self.ago) || number(count_word).is_none() {
            return 0;
        }
        let last = place + count + 1;
        translated.extend([(count_word, place), (unit, last), ("ago", last)]);
        count + 2
    }
}

/// Adds a word in the place where English has it.
fn add<'t>(english: &'t str, place: usize, translated: &mut Vec<Translated<'t>>) {
    let before = translated.last().copied();
    match (before, english) {
        (_, "") => {}
        // `until in May`
        (Some((bound, _)), "in" | "on") if Bound::of(bound).is_some() => {}
        // `week last`
        (Some((unit, of_unit)), "last") if is_unit(unit) || weekday(unit).is_some() => {
            translated.pop();
            translated.extend([("last", of_unit), (unit, place)]);
        }
        // `week ago`
        (Some((unit, of_unit)), "ago") if is_unit(unit) => {
            let count = translated.len().checked_sub(2).and_then(|it| translated.get(it));
            if count.is_none_or(|(word, _)| number(word).is_none()) {
                translated.pop();
                translated.extend([("one", of_unit), (unit, of_unit)]);
            }
            translated.push(("ago", place));
        }
        _ => translated.push((english, place)),
    }
}

/// Returns whether a word is `day`, `week`, `month` or `year`.
fn is_unit(word: &str) -> bool {
    word == "day" || around(word, Date::MIN).is_some()
}

static ALL: [Vocabulary; 4] = [
    Vocabulary {
        language: Language::German,
        ago: &["vor"],
        words: &[
            ("", &["der", "die", "das", "den", "dem", "des", "zum"]),
            ("today", &["heute"]),
            ("yesterday", &["gestern"]),
            (
                "last",
                &[
                    "letzte",
                    "letzten",
                    "letzter",
                    "letztes",
                    "letztem",
                    "vergangene",
                    "vergangenen",
                    "vergangener",
                    "vergangenes",
                    "vorige",
                    "vorigen",
                    "voriger",
                    "voriges",
                ],
            ),
            ("this", &["diese", "diesen", "dieser", "dieses", "diesem"]),
            ("day", &["tag", "tage", "tagen"]),
            ("week", &["woche", "wochen"]),
            ("month", &["monat", "monate", "monaten", "monats"]),
            ("year", &["jahr", "jahre", "jahren", "jahres"]),
            ("in", &["in", "im"]),
            ("on", &["am", "vom", "von"]),
            ("before", &["vor"]),
            ("after", &["nach"]),
            ("since", &["seit"]),
            ("until", &["bis"]),
            ("one", &["ein", "eine", "einem", "einer", "einen"]),
            ("two", &["zwei"]),
            ("three", &["drei"]),
            ("four", &["vier"]),
            ("five", &["fünf"]),
            ("six", &["sechs"]),
            ("seven", &["sieben"]),
            ("eight", &["acht"]),
            ("nine", &["neun"]),
            ("ten", &["zehn"]),
            ("january", &["januar", "jänner"]),
            ("february", &["februar"]),
            ("march", &["märz"]),
            ("may", &["mai"]),
            ("june", &["juni"]),
            ("july", &["juli"]),
            ("october", &["oktober"]),
            ("december", &["dezember"]),
            ("monday", &["montag"]),
            ("tuesday", &["dienstag"]),
            ("wednesday", &["mittwoch"]),
            ("thursday", &["donnerstag"]),
            ("friday", &["freitag"]),
            ("saturday", &["samstag", "sonnabend"]),
            ("sunday", &["sonntag"]),
        ],
    },
    Vocabulary {
        language: Language::French,
        ago: &["il", "y", "a"],
        words: &[
            ("", &["hui", "la", "l", "les", "d", "de", "du", "des", "à", "fin"]),
            ("today", &["aujourd"]),
            ("yesterday", &["hier"]),
            ("last", &["dernier", "dernière", "derniers", "dernières", "passé", "passée"]),
            ("this", &["ce", "cet", "cette"]),
            ("day", &["jour", "jours"]),
            ("week", &["semaine", "semaines"]),
            ("month", &["mois"]),
            ("year", &["an", "ans", "année", "années"]),
            ("in", &["en", "au"]),
            ("on", &["le"]),
            ("before", &["avant"]),
            ("after", &["après"]),
            ("since", &["depuis"]),
            ("until", &["jusqu"]),
            ("one", &["un", "une"]),
            ("two", &["deux"]),
            ("three", &["trois"]),
            ("four", &["quatre"]),
            ("five", &["cinq"]),
            ("seven", &["sept"]),
            ("eight", &["huit"]),
            ("nine", &["neuf"]),
            ("ten", &["dix"]),
            ("january", &["janvier"]),
            ("february", &["février"]),
            ("march", &["mars"]),
            ("april", &["avril"]),
            ("may", &["mai"]),
            ("june", &["juin"]),
            ("july", &["juillet"]),
            ("august", &["août"]),
            ("september", &["septembre"]),
            ("october", &["octobre"]),
            ("november", &["novembre"]),
            ("december", &["décembre"]),
            ("monday", &["lundi"]),
            ("tuesday", &["mardi"]),
            ("wednesday", &["mercredi"]),
            ("thursday", &["jeudi"]),
            ("friday", &["vendredi"]),
            ("saturday", &["samedi"]),
            ("sunday", &["dimanche"]),
        ],
    },
    Vocabulary {
        language: Language::Spanish,
        ago: &["hace"],
        words: &[
            ("", &["la", "las", "los", "lo", "de", "del"]),
            ("today", &["hoy"]),
            ("yesterday", &["ayer"]),
            ("last", &["pasado", "pasada", "último", "última", "últimos", "últimas"]),
            ("this", &["este", "esta", "estos", "estas"]),
            ("day", &["día", "días"]),
            ("week", &["semana", "semanas"]),
            ("month", &["mes", "meses"]),
            ("year", &["año", "años"]),
            ("in", &["en"]),
            ("on", &["el"]),
            ("before", &["antes"]),
            ("after", &["después"]),
            ("since", &["desde"]),
            ("until", &["hasta"]),
            ("one", &["un", "una"]),
            ("two", &["dos"]),
            ("three", &["tres"]),
            ("four", &["cuatro"]),
            ("five", &["cinco"]),
            ("six", &["seis"]),
            ("seven", &["siete"]),
            ("eight", &["ocho"]),
            ("nine", &["nueve"]),
            ("ten", &["diez"]),
            ("january", &["enero"]),
            ("february", &["febrero"]),
            ("march", &["marzo"]),
            ("april", &["abril"]),
            ("may", &["mayo"]),
            ("june", &["junio"]),
            ("july", &["julio"]),
            ("august", &["agosto"]),
            ("september", &["septiembre", "setiembre"]),
            ("october", &["octubre"]),
            ("november", &["noviembre"]),
            ("december", &["diciembre"]),
            ("monday", &["lunes"]),
            ("tuesday", &["martes"]),
            ("wednesday", &["miércoles"]),
            ("thursday", &["jueves"]),
            ("friday", &["viernes"]),
            ("saturday", &["sábado"]),
            ("sunday", &["domingo"]),
        ],
    },
    Vocabulary {
        language: Language::Russian,
        ago: &[],
        words: &[
            ("today", &["сегодня"]),
            ("yesterday", &["вчера"]),
            (
                "last",
                &[
                    "прошлой",
                    "прошлом",
                    "прошлый",
                    "прошлую",
                    "прошлая",
                    "прошлого",
                    "последние",
                    "последнюю",
                    "последний",
                ],
            ),
            ("this", &["этой", "этом", "эту", "этот", "эта", "этого"]),
            ("day", &["день", "дня", "дней"]),
            ("week", &["неделя", "недели", "неделе", "неделю", "недель"]),
            ("month", &["месяц", "месяца", "месяце", "месяцев"]),
            ("year", &["год", "года", "году", "лет"]),
            ("ago", &["назад"]),
            ("in", &["в", "во", "за"]),
            ("on", &["на"]),
            ("before", &["до"]),
            ("after", &["после"]),
            ("since", &["с", "со"]),
            ("one", &["один", "одну"]),
            ("two", &["два", "две"]),
            ("three", &["три"]),
            ("four", &["четыре"]),
            ("five", &["пять"]),
            ("six", &["шесть"]),
            ("seven", &["семь"]),
            ("eight", &["восемь"]),
            ("nine", &["девять"]),
            ("ten", &["десять"]),
            ("january", &["январь", "января", "январе"]),
            ("february", &["февраль", "февраля", "феврале"]),
            ("march", &["март", "марта", "марте"]),
            ("april", &["апрель", "апреля", "апреле"]),
            ("may", &["май", "мая", "мае"]),
            ("june", &["июнь", "июня", "июне"]),
            ("july", &["июль", "июля", "июле"]),
            ("august", &["август", "августа", "августе"]),
            ("september", &["сентябрь", "сентября", "сентябре"]),
            ("october", &["октябрь", "октября", "октябре"]),
            ("november", &["ноябрь", "ноября", "ноябре"]),
            ("december", &["декабрь", "декабря", "декабре"]),
            ("monday", &["понедельник"]),
            ("tuesday", &["вторник"]),
            ("wednesday", &["среда", "среду"]),
            ("thursday", &["четверг"]),
            ("friday", &["пятница", "пятницу"]),
            ("saturday", &["суббота", "субботу"]),
            ("sunday", &["воскресенье"]),
        ],
    },
];
