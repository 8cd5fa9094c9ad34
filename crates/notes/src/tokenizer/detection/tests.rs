//! Which language is detected.

use proptest::prelude::*;

use super::*;

/// The beginning of a note in each language.
const SAMPLES: [(Language, &str); 18] = [
    (
        Language::English,
        "The kettle is in the kitchen, but we should buy a new one for the office.",
    ),
    (
        Language::Czech,
        "Konvice je v kuchyni, ale měli bychom koupit novou, protože ta stará se rozbila a já ji dám do koše.",
    ),
    (
        Language::Danish,
        "Kedlen står i køkkenet, men vi skal købe en ny til kontoret, fordi den blev ødelagt af børnene efter festen.",
    ),
    (
        Language::Dutch,
        "De ketel staat in de keuken, maar we moeten een nieuwe kopen voor het kantoor, omdat die kapot is.",
    ),
    (
        Language::Finnish,
        "Keitin on keittiössä, mutta meidän pitää ostaa uusi, koska se on rikki ja minä en löydä sitä.",
    ),
    (
        Language::French,
        "La bouilloire est dans la cuisine, mais nous devons en acheter une autre pour le bureau.",
    ),
    (
        Language::German,
        "Der Kessel steht in der Küche, aber wir müssen einen neuen für das Büro kaufen, weil er kaputt ist.",
    ),
    (Language::Greek, "Ο βραστήρας είναι στην κουζίνα, αλλά πρέπει να αγοράσουμε έναν καινούργιο."),
    (
        Language::Hungarian,
        "A vízforraló a konyhában van, de venni kell egy újat az irodába, mert ez már elromlott.",
    ),
    (
        Language::Italian,
        "Il bollitore è in cucina, ma dobbiamo comprarne uno nuovo per l'ufficio perché questo è rotto.",
    ),
    (
        Language::Norwegian,
        "Kjelen står på kjøkkenet, men vi må kjøpe noe nytt til kontoret etter ferien, hvis det er noen igjen av pengene.",
    ),
    (
        Language::Polish,
        "Czajnik jest w kuchni, ale musimy kupić nowy do biura, bo ten już się zepsuł.",
    ),
    (
        Language::Portuguese,
        "A chaleira está na cozinha, mas temos de comprar uma nova para o escritório, porque ela não é boa.",
    ),
    (
        Language::Romanian,
        "Ceainicul este în bucătărie, dar trebuie să cumpărăm unul nou pentru birou, că acesta s-a stricat.",
    ),
    (
        Language::Russian,
        "Чайник стоит на кухне, но надо купить новый для офиса, потому что этот сломался.",
    ),
    (
        Language::Spanish,
        "La tetera está en la cocina, pero hay que comprar una nueva para la oficina, porque se rompió.",
    ),
    (
        Language::Swedish,
        "Vattenkokaren står i köket, men vi ska köpa något nytt till kontoret, för att den är trasig.",
    ),
    (
        Language::Ukrainian,
        "Чайник стоїть на кухні, але треба купити новий для офісу, бо цей зламався і його викинули.",
    ),
];

#[test]
fn a_sentence_is_enough() {
    for (language, text) in SAMPLES {
        assert_eq!(Language::detect(text), language, "{text}");
        assert_eq!(Language::detect(&text.to_uppercase()), language, "{text}");
    }
}

/// Short notes as people write them.
const SHORT: [(Language, &str); 34] = [
    (Language::English, "Call the dentist about the invoice"),
    (Language::English, "Password of the router is on the fridge"),
    (Language::Czech, "Klíče jsou u sousedky a auto je v servisu"),
    (Language::Danish, "Nøglerne er hos naboen, og bilen er på værkstedet"),
    (Language::Dutch, "De sleutels liggen bij de buren en de auto is in de garage"),
    (Language::Dutch, "Bel de tandarts over de rekening van het bezoek"),
    (Language::Finnish, "Avaimet ovat naapurilla ja auto on korjaamolla"),
    (Language::French, "Les clés sont chez le voisin et la voiture est au garage"),
    (Language::French, "Appeler le dentiste pour la facture de la semaine"),
    (Language::French, "Qui est-ce qui a le code de la porte ?"),
    (Language::German, "Die Schlüssel sind bei den Nachbarn und das Auto ist in der Werkstatt"),
    (Language::German, "Zahnarzt wegen der Rechnung anrufen, und zwar bis Freitag"),
    (Language::German, "Wo ist der Router?"),
    (Language::Greek, "Τα κλειδιά είναι στον γείτονα"),
    (Language::Hungarian, "A kulcsok a szomszédnál vannak, és az autó a szerelőnél van"),
    (Language::Italian, "Le chiavi sono dal vicino e la macchina è dal meccanico"),
    (Language::Italian, "Chiamare il dentista per la fattura della settimana"),
    (Language::Norwegian, "Nøklene er hos naboen etter ferien, og noen må hente meg"),
    (Language::Polish, "Klucze są u sąsiadki, a samochód jest w warsztacie"),
    (Language::Polish, "Zadzwonić do dentysty, bo nie ma faktury za wizytę"),
    (Language::Portuguese, "As chaves estão com a vizinha e o carro está na oficina"),
    (Language::Portuguese, "Ligar para o dentista sobre a fatura que não chegou"),
    (Language::Romanian, "Cheile sunt la vecină și mașina este la service"),
    (Language::Russian, "Ключи у соседки, а машина в мастерской"),
    (Language::Russian, "Купить молоко"),
    (Language::Spanish, "Las llaves están con la vecina y el coche está en el taller"),
    (Language::Spanish, "Llamar al dentista por la factura de la semana"),
    (Language::Swedish, "Nycklarna är hos grannen och bilen är på verkstaden"),
    (Language::Swedish, "Ring tandläkaren om fakturan, för den har inte kommit än"),
    (Language::Ukrainian, "Ключі у сусідки, а машина в майстерні, бо її ремонтують"),
    (Language::Ukrainian, "Що це за дзвінок і чому його не було?"),
    (Language::English, "TODO: fix the parser, it is broken for empty input"),
    (Language::English, "# Standup\n\n- deployed v2\n- next: the migration of users"),
    (Language::English, "ssh -L 8080:localhost:80 user@host # tunnel to the staging box"),
];

#[test]
fn short_notes() {
    for (language, text) in SHORT {
        assert_eq!(Language::detect(text), language, "{text}");
    }
}

#[test]
fn markup_is_not_evidence() {
    for (language, text) in SAMPLES {
        let marked = text.replace(' ', "** **").replace(". ", ".\n\n- [x] ");
        assert_eq!(Language::detect(&format!("# {marked}")), language, "{marked}");
        let listed = format!("- `{}`", text.split(' ').collect::<Vec<_>>().join("`\n- `"));
        assert_eq!(Language::detect(&listed), language, "{listed}");
    }
}

#[test]
fn code_is_english() {
    for text in [
        "import os\nfrom sys import argv\n\ndef main():\n    for name in argv:\n        print(name)\n",
        "SELECT id, name FROM users WHERE id IN (1, 2) ORDER BY name DESC LIMIT 10",
        "fn add(a: u32, b: u32) -> u32 { a + b }\nstruct Dir { bin: Vec<u8> }",
        "<div class=\"a\"><span>x</span></div>\n.a { color: red; margin: 0 }",
        "docker run -d --rm -e VAR=1 -v data:/var/lib app:latest",
        "{\"a\": 1, \"de\": null, \"list\": [true, false]}",
    ] {
        assert_eq!(Language::detect(text), Language::English, "{text}");
    }
}

#[test]
fn a_quotation_does_not_decide() {
    let text = "The poem begins with «Über allen Gipfeln ist Ruh, in allen Wipfeln spürest du», and \
        it is the best of what he wrote.";
    assert_eq!(Language::detect(text), Language::English);
    let text = "Wir haben uns für „the quick brown fox\" entschieden, weil es in den Test passt.";
    assert_eq!(Language::detect(text), Language::German);
}

#[test]
fn too_little_evidence_is_english() {
    for text in [
        "",
        "42",
        "Tea",
        "buy milk, bread, butter",
        "fn main() { let x = 3; }",
        "Die Hard",
        "La La Land",
        "import os, sys; bin/dir/var con com.example.www",
        "日本語のメモ",
        "ABC-123 ABC-124 ABC-125",
    ] {
        assert_eq!(Language::detect(text), Language::English, "{text}");
    }
}

#[test]
fn a_word_that_repeats_is_one_piece_of_evidence() {
    let text = "www.example.com die.example.com ".repeat(50);
    assert_eq!(Language::detect(&text), Language::English);
    assert_eq!(Language::detect("der der der der der der"), Language::English);
    assert_eq!(Language::detect("der und die"), Language::German);
}

#[test]
fn scattered_words_are_not_evidence() {
    let code = "x1 os x2 x3 x4 var x5 x6 x7 x8 der x9 ";
    assert_eq!(Language::detect(&code.repeat(12)), Language::English);
}

#[test]
fn two_words_are_enough_without_english_ones() {
    assert_eq!(Language::detect("Milch und Brot für Oma"), Language::German);
    assert_eq!(Language::detect("Milch und Brot für the grandmother"), Language::English);
}

#[test]
fn a_script_is_evidence_by_itself() {
    assert_eq!(Language::detect("Москва"), Language::Russian);
    assert_eq!(Language::detect("Αθήνα"), Language::Greek);
    assert_eq!(Language::detect("the letters of Москва and Київ"), Language::English);
}

#[test]
fn only_the_beginning_counts() {
    let [(_, english), ..] = SAMPLES;
    let german = SAMPLES[6].1;
    let much = |text: &str| text.repeat(50);
    assert_eq!(Language::detect(&(much(german) + &much(english))), Language::German);
    assert_eq!(Language::detect(&(much(english) + &much(german))), Language::English);
    assert_eq!(Language::detect(&"日本語".repeat(10_000)), Language::English);
    let far = format!("{} {}", "x ".repeat(WORDS_MAX), german);
    assert_eq!(Language::detect(&far), Language::English);
}

#[test]
fn every_short_stop_word_is_in_the_table() {
    let taken = STOP_WORDS.0.iter().filter(|slot| slot.key != 0).count();
    assert!(taken * 2 < SLOTS_COUNT, "{taken}");
    for language in Language::ALL {
        for text in language.stop_words().iter().filter(|text| text.len() <= 8) {
            let mut word = WordKey::default();
            text.chars().for_each(|letter| word.push(letter));
            let (_, languages) = STOP_WORDS.find(&word).unwrap();
            assert_ne!(languages & (1 << (language as u32)), 0, "{language:?} {text}");
        }
    }
}

proptest! {
    #[test]
    fn detection_takes_any_text(text in any::<String>()) {
        Language::detect(&text);
    }

    #[test]
    fn the_order_of_sentences_makes_no_difference_below_the_limit(
        (language, words) in prop::sample::select(SAMPLES.to_vec()).prop_flat_map(|(language, text)| {
            let words: Vec<_> = text.split(' ').collect();
            (Just(language), Just(words).prop_shuffle())
        })
    ) {
        prop_assert_eq!(Language::detect(&words.join(" ")), language);
    }
}
