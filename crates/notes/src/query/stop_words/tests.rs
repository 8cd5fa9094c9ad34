//! Which words of a question are searched for.

mod properties;

use super::*;
use crate::query::Query;

/// Returns the words of a query that are left, given the languages of the texts.
fn left(text: &str, languages: &[Language]) -> String {
    let Some(Expr::Juxtaposed(parts)) = Query::parse(text).expr else {
        panic!("`{text}` is several words")
    };
    let left = significant(&parts, languages).into_iter().filter_map(word_of);
    left.collect::<Vec<_>>().join(" ")
}

fn english(text: &str) -> String {
    left(text, &[Language::English])
}

#[test]
fn questions_lose_their_stop_words() {
    assert_eq!(english("What is the name of my cat? Where will it sleep?"), "name my cat? sleep?");
    assert_eq!(english("what did I say, what I\u{2019}ve done"), "say, done");
    assert_eq!(english("to be or not"), "not");
    assert_eq!(english("is it all"), "is it all");
    assert_eq!(english("is it tag:tea"), "is it");
}

#[test]
fn whose_fact_it_is_is_kept() {
    assert_eq!(english("when is my birthday"), "my birthday");
    assert_eq!(english("what did you tell me about our trip"), "you tell me our trip");
    assert_eq!(english("what is it that I have"), "what is it that I have");
}

#[test]
fn capitalized_words_are_kept() {
    for text in ["IT department", "US visa", "WHO guidelines", "Will birthday", "may 2023"] {
        assert_eq!(english(text), text);
    }
    assert_eq!(english("the May 2023 meeting of the US office"), "May 2023 meeting US office");
    assert_eq!(english("how did Will and IT help us"), "Will IT help us");
    assert_eq!(english("tea with no sugar"), "tea no sugar");
}

#[test]
fn each_language_has_its_own_stop_words() {
    let all = &Language::ALL;
    for (text, expected) in [
        ("Wie heißt der Hund von meiner Schwester?", "heißt Hund meiner Schwester?"),
        ("où est la clé de la maison", "clé maison"),
        ("qu\u{2019}est-ce que c\u{2019}est le budget", "budget"),
        ("¿dónde está la llave de mi casa?", "llave mi casa?"),
        ("dov'è la chiave della mia casa", "chiave mia casa"),
        ("onde está a chave da minha casa", "chave minha casa"),
        ("waar is de sleutel van mijn huis", "sleutel mijn huis"),
        ("var är nyckeln till mitt hus", "nyckeln mitt hus"),
        ("missä on minun talon avain", "minun talon avain"),
        ("где ключ от моего дома", "ключ моего дома"),
        ("what is the key of my house", "key my house"),
    ] {
        assert_eq!(left(text, all), expected);
    }
}

#[test]
fn only_languages_of_the_texts_count_and_one_word_proves_nothing() {
    let german = &[Language::German, Language::English];
    assert_eq!(left("die hard", german), "die hard");
    assert_eq!(left("wo ist die Katze", german), "Katze");
    assert_eq!(english("wo ist die Katze"), "wo ist die Katze");
    assert_eq!(left("what was in the war", german), "war");
    assert_eq!(left("the key", &[]), "the key");
}

#[test]
fn phrases_prefixes_and_filters_are_never_dropped() {
    let parts = |text: &str| match Query::parse(text).expr {
        Some(Expr::Juxtaposed(parts)) => significant(&parts, &[Language::English]).len(),
        _ => 0,
    };
    assert_eq!(parts("\"to be\" the the* tag:the"), 3);
    assert_eq!(parts("the (of the) tea"), 1);
    assert_eq!(parts("the NOT of tea"), 2);
    assert_eq!(parts("the (a OR the) tea"), 2);
}

#[test]
fn punctuation_around_a_stop_word_is_ignored() {
    for text in ["the? tea", "the, tea", "the: tea", "The. tea", "THE tea", "\u{a1}the! tea"] {
        let expected = if text.starts_with("THE") { text } else { "tea" };
        assert_eq!(english(text), expected, "{text}");
    }
}

#[test]
fn a_question_in_each_language_keeps_its_subject() {
    for (language, text, expected) in [
        (Language::Czech, "kde je klíč od domu", "klíč domu"),
        (Language::Danish, "hvor er nøglen til huset", "nøglen huset"),
        (Language::Dutch, "wat is de code van het alarm", "code alarm"),
        (Language::Finnish, "mikä on talon numero", "talon numero"),
        (Language::French, "quel est le prix de la chambre", "prix chambre"),
        (Language::German, "was ist das Passwort für den Router", "Passwort Router"),
        (Language::Greek, "που είναι το κλειδί του σπιτιού", "κλειδί σπιτιού"),
        (Language::Hungarian, "hol van a ház kulcsa", "ház kulcsa"),
        (Language::Italian, "qual è il prezzo della camera", "qual prezzo camera"),
        (Language::Norwegian, "hvor er nøkkelen til huset", "nøkkelen huset"),
        (Language::Polish, "gdzie jest klucz do domu", "klucz domu"),
        (Language::Portuguese, "qual é o preço do quarto", "preço quarto"),
        (Language::Romanian, "care este prețul pentru cameră", "prețul cameră"),
        (Language::Russian, "какой пароль у роутера", "пароль роутера"),
        (Language::Spanish, "cuál es el precio de la habitación", "precio habitación"),
        (Language::Swedish, "vad är koden till larmet", "koden larmet"),
        (Language::Ukrainian, "який пароль до роутера", "пароль роутера"),
    ] {
        assert_eq!(left(text, &[Language::English, language]), expected, "{language:?}");
    }
}
