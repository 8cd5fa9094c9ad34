//! Stop words: the most frequent words of each language, which carry no information about a text.
//!
//! Negations are not included, nor are words that are often significant, such as `may`. Each list
//! is sorted.

pub(super) const CZECH: &[&str] = &[
    "a", "aby", "ale", "až", "byl", "byla", "byli", "bylo", "být", "co", "do", "ho", "i", "jak",
    "jako", "jaká", "jaké", "jaký", "je", "jeho", "jejich", "její", "ji", "jim", "jsem", "jsi",
    "jsme", "jsou", "jste", "já", "jí", "k", "kde", "kdo", "kdy", "když", "kterou", "která",
    "které", "který", "mi", "moje", "my", "má", "mám", "mít", "mě", "můj", "na", "nad", "nám",
    "nás", "náš", "o", "od", "on", "ona", "oni", "ono", "po", "pod", "pro", "proč", "před", "při",
    "s", "se", "si", "svůj", "ta", "tak", "také", "ten", "tento", "to", "tohle", "toho", "tom",
    "tomu", "tu", "ty", "tě", "u", "v", "ve", "vy", "vám", "vás", "z", "za", "zda", "ze", "že",
];

pub(super) const DANISH: &[&str] = &[
    "af", "alle", "at", "blev", "da", "de", "dem", "den", "denne", "der", "deres", "det", "dette",
    "dig", "din", "dine", "disse", "du", "efter", "eller", "en", "end", "er", "et", "for", "fra",
    "ham", "han", "hans", "har", "havde", "hende", "hendes", "her", "hos", "hun", "hvad", "hvem",
    "hvilken", "hvis", "hvor", "hvordan", "hvorfor", "hvornår", "i", "jeg", "kan", "kunne", "man",
    "med", "men", "mig", "min", "mine", "mit", "mod", "noget", "nogle", "nu", "når", "og", "også",
    "om", "op", "os", "over", "på", "selv", "sig", "sin", "sine", "skal", "skulle", "som", "så",
    "sådan", "til", "ud", "under", "var", "ved", "vi", "vil", "ville", "vores", "være", "været",
];

pub(super) const DUTCH: &[&str] = &[
    "aan", "als", "ben", "bent", "bij", "daar", "dan", "dat", "de", "deze", "die", "dit", "door",
    "een", "en", "er", "had", "hadden", "heb", "hebben", "heeft", "hem", "het", "hier", "hij",
    "hoe", "hun", "ik", "in", "is", "je", "jij", "jou", "jouw", "kan", "kon", "kunnen", "maar",
    "me", "met", "mij", "mijn", "naar", "nog", "nu", "of", "om", "omdat", "ons", "onze", "ook",
    "op", "over", "te", "tot", "u", "uit", "uw", "van", "voor", "waar", "waarom", "wanneer",
    "waren", "was", "wat", "we", "welk", "welke", "werd", "wie", "wij", "wil", "worden", "wordt",
    "zal", "ze", "zich", "zij", "zijn", "zo", "zou", "zouden",
];

pub(super) const ENGLISH: &[&str] = &[
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been",
    "but", "by", "can", "could", "did", "didn't", "do", "does", "doesn't", "don't", "for", "from",
    "had", "has", "have", "he", "her", "him", "his", "how", "how's", "i", "i'd", "i'm", "i've",
    "if", "in", "into", "is", "isn't", "it", "it's", "its", "let", "let's", "me", "might", "must",
    "my", "nor", "of", "on", "or", "our", "ours", "out", "over", "please", "shall", "she", "should",
    "so", "some", "such", "than", "that", "that's", "the", "their", "theirs", "them", "then",
    "there", "there's", "these", "they", "this", "those", "to", "too", "up", "us", "was", "wasn't",
    "we", "we've", "were", "what", "what's", "when", "where", "where's", "which", "while", "who",
    "who's", "whom", "whose", "why", "will", "with", "won't", "would", "you", "you're", "your",
    "yours",
];

pub(super) const FINNISH: &[&str] = &[
    "että", "he", "heidän", "hän", "hänen", "ja", "joka", "jos", "jossa", "jotka", "kanssa",
    "koska", "kuin", "kuka", "kun", "me", "meidän", "miksi", "mikä", "milloin", "millä", "minulla",
    "minun", "minut", "minä", "missä", "mitä", "mutta", "myös", "ne", "niin", "niitä", "nyt",
    "olen", "olet", "oli", "olivat", "olla", "on", "ovat", "se", "sekä", "sen", "siellä", "siinä",
    "siitä", "sinun", "sinä", "sitä", "tai", "te", "teidän", "tuo", "tämä", "tämän", "tässä", "vai",
    "vaikka",
];

pub(super) const FRENCH: &[&str] = &[
    "ai", "alors", "as", "au", "aussi", "aux", "avait", "avec", "avoir", "c'est", "ce", "cela",
    "ces", "cet", "cette", "comme", "comment", "d'un", "d'une", "dans", "de", "des", "donc", "du",
    "elle", "elles", "en", "est", "et", "eux", "fut", "il", "ils", "j'ai", "je", "l'on", "la", "le",
    "les", "leur", "leurs", "lui", "ma", "mais", "me", "mes", "moi", "mon", "n'est", "nos", "notre",
    "nous", "on", "ont", "ou", "où", "par", "pour", "pourquoi", "qu'elle", "qu'est-ce", "qu'il",
    "qu'on", "quand", "que", "quel", "quelle", "quelles", "quels", "qui", "quoi", "s'est", "s'il",
    "sa", "se", "ses", "si", "son", "sont", "sur", "ta", "te", "tes", "toi", "ton", "tu", "un",
    "une", "vos", "votre", "vous", "y", "à", "étaient", "était", "être",
];

pub(super) const GERMAN: &[&str] = &[
    "aber", "als", "am", "an", "auch", "auf", "aus", "bei", "bin", "bis", "bist", "da", "dann",
    "das", "dass", "dein", "deine", "dem", "den", "denn", "der", "des", "dich", "die", "dies",
    "diese", "diesem", "diesen", "dieser", "dieses", "dir", "doch", "du", "durch", "ein", "eine",
    "einem", "einen", "einer", "eines", "er", "es", "euch", "euer", "für", "gibt", "hab", "habe",
    "haben", "hast", "hat", "hatte", "hatten", "ich", "ihm", "ihn", "ihnen", "ihr", "ihre", "ihrem",
    "ihren", "ihrer", "im", "in", "ins", "ist", "ja", "kann", "kannst", "können", "mein", "meine",
    "meinem", "meinen", "meiner", "mich", "mir", "mit", "muss", "nach", "noch", "nun", "ob", "oder",
    "sein", "seine", "seinem", "seinen", "seiner", "seit", "sich", "sie", "sind", "so", "soll",
    "um", "und", "uns", "unser", "unsere", "unter", "vom", "von", "vor", "wann", "war", "waren",
    "warum", "was", "weil", "welche", "welchem", "welchen", "welcher", "welches", "wem", "wen",
    "wenn", "wer", "werden", "wie", "wieso", "wir", "wird", "wo", "wurde", "wurden", "zu", "zum",
    "zur", "über",
];

pub(super) const GREEK: &[&str] = &[
    "ένα", "έναν", "ένας", "έχει", "έχω", "ή", "ήταν", "αλλά", "αν", "από", "αυτά", "αυτές", "αυτή",
    "αυτοί", "αυτό", "αυτός", "για", "δικό", "είναι", "είχα", "είχε", "εγώ", "εκεί", "η", "θα",
    "και", "κι", "μία", "μας", "με", "μια", "μου", "να", "ο", "οι", "που", "πού", "πως", "πώς",
    "σας", "σε", "σου", "στα", "στη", "στην", "στις", "στο", "στον", "στους", "τα", "τη", "την",
    "της", "τι", "τις", "το", "τον", "του", "τους", "των", "ως", "όπως", "όταν", "ότι",
];

pub(super) const HUNGARIAN: &[&str] = &[
    "a", "abban", "ahhoz", "aki", "akik", "akkor", "amely", "ami", "az", "azok", "azon", "azt",
    "ban", "be", "ben", "de", "egy", "ehhez", "ennek", "ez", "ezek", "ezen", "ezt", "ha", "hogy",
    "hogyan", "hol", "is", "itt", "ki", "lesz", "meg", "melyik", "mert", "mi", "mikor", "milyen",
    "mint", "mit", "miért", "már", "nekem", "ott", "pedig", "te", "ti", "vagy", "vagyok", "van",
    "vannak", "volt", "voltak", "én", "és", "így", "úgy", "ő", "ők",
];

pub(super) const ITALIAN: &[&str] = &[
    "a", "abbiamo", "ad", "agli", "ai", "al", "alla", "alle", "allo", "anche", "c'è", "che", "chi",
    "ci", "come", "con", "cos'è", "cosa", "cui", "da", "dagli", "dai", "dal", "dalla", "dalle",
    "degli", "dei", "del", "dell", "della", "delle", "dello", "di", "dov'è", "dove", "e", "ed",
    "era", "erano", "gli", "ha", "hai", "hanno", "ho", "i", "il", "in", "io", "l", "la", "le",
    "lei", "li", "lo", "loro", "lui", "ma", "me", "mi", "mia", "mie", "miei", "mio", "ne", "nei",
    "nel", "nell", "nella", "nelle", "noi", "nostra", "nostro", "o", "per", "perché", "quale",
    "quali", "quando", "quella", "quelle", "quelli", "quello", "questa", "queste", "questi",
    "questo", "se", "sei", "si", "sia", "siamo", "sono", "sta", "sua", "sue", "sui", "sul", "sull",
    "sulla", "suo", "suoi", "te", "ti", "tra", "tu", "tua", "tue", "tuo", "tuoi", "un", "un'altra",
    "una", "uno", "vi", "voi", "è",
];

pub(super) const NORWEGIAN: &[&str] = &[
    "alle", "at", "av", "ble", "bli", "da", "de", "deg", "dem", "den", "denne", "der", "deres",
    "det", "dette", "din", "dine", "disse", "du", "eller", "en", "er", "et", "etter", "for", "fra",
    "ha", "hadde", "ham", "han", "hans", "har", "henne", "hennes", "her", "hos", "hun", "hva",
    "hvem", "hvilken", "hvilket", "hvis", "hvor", "hvordan", "hvorfor", "i", "jeg", "kan", "kunne",
    "man", "med", "meg", "men", "min", "mine", "mitt", "mot", "noe", "noen", "nå", "når", "og",
    "også", "om", "opp", "oss", "over", "på", "seg", "selv", "sin", "sine", "skal", "skulle",
    "slik", "som", "så", "til", "under", "ut", "var", "ved", "vi", "vil", "ville", "vår", "være",
    "vært",
];

pub(super) const POLISH: &[&str] = &[
    "a", "aby", "ale", "bo", "by", "być", "był", "była", "było", "były", "ci", "co", "czy", "dla",
    "do", "gdy", "gdzie", "go", "i", "ich", "im", "ja", "jak", "jaka", "jaki", "jakie", "jako",
    "je", "jego", "jej", "jest", "jestem", "jeśli", "już", "kiedy", "kto", "która", "które",
    "którego", "której", "który", "których", "lub", "ma", "mam", "mi", "mnie", "moja", "moje", "my",
    "mój", "na", "nad", "nam", "nas", "nasz", "o", "od", "on", "ona", "one", "oni", "oraz", "po",
    "pod", "przed", "przez", "przy", "się", "są", "ta", "taki", "takie", "te", "tego", "tej", "ten",
    "to", "tu", "ty", "tym", "u", "w", "we", "więc", "wy", "z", "za", "ze", "że", "żeby",
];

pub(super) const PORTUGUESE: &[&str] = &[
    "a", "ao", "aos", "aquela", "aquele", "aquilo", "as", "com", "como", "da", "das", "de", "dela",
    "dele", "deles", "do", "dos", "e", "ela", "elas", "ele", "eles", "em", "era", "eram", "essa",
    "esse", "esta", "estas", "este", "estes", "estou", "está", "estão", "eu", "foi", "foram", "há",
    "isso", "isto", "já", "lhe", "lhes", "me", "meu", "meus", "minha", "minhas", "na", "nas", "no",
    "nos", "nossa", "nosso", "num", "numa", "o", "onde", "os", "ou", "para", "pela", "pelas",
    "pelo", "pelos", "por", "porque", "quais", "qual", "quando", "que", "quem", "se", "ser", "seu",
    "seus", "sou", "sua", "suas", "são", "também", "te", "tem", "tenho", "ter", "teu", "teus",
    "tinha", "tu", "tua", "tuas", "têm", "um", "uma", "umas", "uns", "você", "vocês", "à", "às",
    "é",
];

pub(super) const ROMANIAN: &[&str] = &[
    "a", "acea", "aceasta", "această", "acest", "aceste", "acestea", "acestui", "al", "ale", "am",
    "ar", "are", "as", "asta", "au", "ați", "care", "ce", "cea", "cei", "cel", "cele", "cine", "cu",
    "cum", "când", "cât", "că", "dacă", "de", "din", "ea", "ei", "el", "ele", "era", "erau", "este",
    "eu", "fi", "fiind", "fost", "la", "le", "lui", "mea", "mei", "mele", "meu", "mi", "mă", "ne",
    "noastre", "noastră", "noi", "nostru", "o", "pe", "pentru", "prin", "s-a", "sa", "sale", "sau",
    "se", "sunt", "sînt", "să", "ta", "tale", "te", "tu", "tău", "un", "una", "unde", "unei",
    "unor", "unui", "va", "voi", "vom", "vor", "vă", "îi", "îl", "îmi", "în", "își", "și",
];

pub(super) const RUSSIAN: &[&str] = &[
    "а", "бы", "был", "была", "были", "было", "быть", "в", "вам", "вас", "ваш", "во", "вот", "все",
    "всех", "всё", "вы", "где", "да", "для", "до", "его", "ее", "если", "есть", "её", "же", "за",
    "и", "из", "или", "им", "их", "к", "как", "какая", "какие", "какой", "ко", "когда", "которая",
    "которые", "который", "кто", "ли", "меня", "мне", "мной", "моего", "моей", "мои", "мой", "моя",
    "мы", "на", "над", "нам", "нас", "наш", "него", "ней", "неё", "них", "но", "о", "об", "он",
    "она", "они", "оно", "от", "по", "под", "потому", "почему", "при", "про", "с", "свой", "себя",
    "со", "так", "такой", "те", "тебе", "тебя", "тем", "то", "того", "тоже", "той", "том", "тот",
    "ты", "у", "чего", "чем", "что", "чтобы", "эта", "эти", "это", "этого", "этой", "этом", "этот",
    "я",
];

pub(super) const SPANISH: &[&str] = &[
    "a", "al", "aquel", "aquella", "aquello", "como", "con", "cual", "cuando", "cuál", "cuáles",
    "cuándo", "cómo", "de", "del", "donde", "dónde", "e", "el", "ella", "ellas", "ellos", "en",
    "era", "eran", "es", "esa", "esas", "ese", "eso", "esos", "esta", "estas", "este", "esto",
    "estos", "estoy", "está", "están", "fue", "fueron", "ha", "han", "has", "hay", "he", "la",
    "las", "le", "les", "lo", "los", "me", "mi", "mis", "muy", "nos", "nosotros", "nuestra",
    "nuestro", "o", "os", "para", "pero", "por", "porque", "que", "quien", "quién", "quiénes",
    "qué", "se", "ser", "si", "sido", "son", "soy", "su", "sus", "también", "te", "tengo", "tenía",
    "ti", "tiene", "tienen", "tu", "tus", "tú", "un", "una", "unas", "uno", "unos", "usted",
    "ustedes", "y", "ya", "yo", "él",
];

pub(super) const SWEDISH: &[&str] = &[
    "alla", "att", "av", "blev", "bli", "de", "dem", "den", "denna", "deras", "dess", "det",
    "detta", "dig", "din", "dina", "du", "där", "då", "efter", "eller", "en", "er", "ett", "från",
    "för", "ha", "hade", "han", "hans", "har", "henne", "hennes", "hon", "honom", "hos", "hur",
    "här", "i", "jag", "kan", "kunde", "med", "men", "mig", "min", "mina", "mitt", "mot", "nu",
    "när", "något", "några", "och", "också", "om", "oss", "på", "sig", "sin", "sina", "ska",
    "skulle", "som", "så", "sådan", "till", "under", "upp", "ut", "vad", "var", "varför", "vem",
    "vi", "vid", "vilka", "vilken", "vilket", "vill", "vår", "våra", "än", "är", "åt",
];

pub(super) const UKRAINIAN: &[&str] = &[
    "а", "або", "але", "б", "би", "бо", "був", "була", "були", "було", "бути", "в", "вам", "вас",
    "ваш", "ви", "вона", "вони", "воно", "все", "всі", "від", "він", "де", "для", "до", "ж", "з",
    "за", "зі", "й", "його", "кого", "коли", "котрий", "мене", "мені", "ми", "моя", "моє", "мої",
    "мій", "на", "над", "нам", "нас", "наш", "о", "об", "по", "при", "про", "під", "своє", "свій",
    "себе", "собі", "та", "так", "також", "те", "тебе", "ти", "тим", "то", "тобі", "того", "той",
    "тому", "у", "хто", "це", "цей", "цього", "цю", "ця", "ці", "чи", "чого", "чому", "ще", "що",
    "щоб", "я", "як", "яка", "яке", "який", "якщо", "які", "є", "і", "із", "їй", "їм", "їх", "її",
];

/// Pronouns of the first and second person, by language. They are stop words of texts, but not of
/// questions: in conversations they tell whose fact is asked for. The subject of the first person
/// singular is left out, because whoever asks uses it for himself: `what did I say`.
pub(super) mod personal {
    pub(in super::super) const CZECH: &[&str] =
        &["moje", "my", "můj", "mě", "nám", "nás", "náš", "ty", "tě", "vy", "vám", "vás"];
    pub(in super::super) const DANISH: &[&str] =
        &["dig", "din", "dine", "du", "mig", "min", "mine", "mit", "os", "vi", "vores"];
    pub(in super::super) const DUTCH: &[&str] = &[
        "je", "jij", "jou", "jouw", "me", "mij", "mijn", "ons", "onze", "u", "uw", "we", "wij",
    ];
    pub(in super::super) const ENGLISH: &[&str] =
        &["me", "my", "our", "ours", "us", "we", "you", "your", "yours"];
    pub(in super::super) const FINNISH: &[&str] =
        &["me", "meidän", "minulla", "minun", "minut", "sinun", "sinä", "te", "teidän"];
    pub(in super::super) const FRENCH: &[&str] = &[
        "ma", "me", "mes", "moi", "mon", "nos", "notre", "nous", "ta", "te", "tes", "toi", "ton",
        "tu", "vos", "votre", "vous",
    ];
    pub(in super::super) const GERMAN: &[&str] = &[
        "dein", "deine", "dich", "dir", "du", "euch", "euer", "mein", "meine", "meinem", "meinen",
        "meiner", "mich", "mir", "uns", "unser", "unsere", "wir",
    ];
    pub(in super::super) const GREEK: &[&str] = &["μας", "μου", "σας", "σου"];
    pub(in super::super) const HUNGARIAN: &[&str] = &["nekem", "te", "ti"];
    pub(in super::super) const ITALIAN: &[&str] = &[
        "me", "mi", "mia", "mie", "miei", "mio", "noi", "nostra", "nostro", "te", "ti", "tu",
        "tua", "tue", "tuo", "tuoi", "voi",
    ];
    pub(in super::super) const NORWEGIAN: &[&str] =
        &["deg", "din", "dine", "du", "meg", "min", "mine", "mitt", "oss", "vi", "vår"];
    pub(in super::super) const POLISH: &[&str] =
        &["mi", "mnie", "moja", "moje", "my", "mój", "nam", "nas", "nasz", "ty", "wy"];
    pub(in super::super) const PORTUGUESE: &[&str] = &[
        "me", "meu", "meus", "minha", "minhas", "nossa", "nosso", "te", "teu", "teus", "tu", "tua",
        "tuas", "você", "vocês",
    ];
    pub(in super::super) const ROMANIAN: &[&str] = &[
        "mea", "mei", "mele", "meu", "mi", "mă", "noastre", "noastră", "noi", "nostru", "ta",
        "tale", "te", "tu", "tău", "vă", "îmi",
    ];
    pub(in super::super) const RUSSIAN: &[&str] = &[
        "вам", "вас", "ваш", "вы", "меня", "мне", "мной", "моего", "моей", "мои", "мой", "моя",
        "мы", "нам", "нас", "наш", "тебе", "тебя", "ты",
    ];
    pub(in super::super) const SPANISH: &[&str] = &[
        "me", "mi", "mis", "nos", "nosotros", "nuestra", "nuestro", "os", "te", "ti", "tu", "tus",
        "tú", "usted", "ustedes",
    ];
    pub(in super::super) const SWEDISH: &[&str] = &[
        "dig", "din", "dina", "du", "mig", "min", "mina", "mitt", "oss", "vi", "vår", "våra",
    ];
    pub(in super::super) const UKRAINIAN: &[&str] = &[
        "вам", "вас", "ваш", "ви", "мене", "мені", "ми", "моя", "моє", "мої", "мій", "нам", "нас",
        "наш", "тебе", "ти", "тобі",
    ];
}
