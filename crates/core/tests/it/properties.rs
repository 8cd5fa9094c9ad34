//! Values of the model against references that do the same in the most obvious way.

use std::time::Duration;

use proptest::prelude::*;
use quipu_core::backend::{Sequence, Span, Stamp};
use quipu_core::diff::{Diff, Line};
use quipu_core::merge::{Merged, merge};
use quipu_core::model::{
    Actor, Content, ContentHash, Description, Directory, Id as _, KeyId, MemoryId, MemoryPath,
    Metadata, Name, PATH_SIZE_BYTES_MAX, PrincipalName, SEGMENTS_MAX, SecretHash, SessionId,
    Timestamp, VersionId, slug,
};
use quipu_core::timeframe;

/// Paths of few short segments, so that they often overlap.
fn small_path() -> impl Strategy<Value = MemoryPath> {
    prop::collection::vec("[ab.é ]{1,2}", 1..5).prop_filter_map("a valid path", |segments| {
        MemoryPath::parse(&format!("/{}", segments.join("/"))).ok()
    })
}

fn segments(path: &MemoryPath) -> Vec<&str> {
    path.as_str().split('/').skip(1).collect()
}

fn segments_of(directory: &Directory) -> Vec<&str> {
    directory.as_str().split('/').filter(|segment| !segment.is_empty()).collect()
}

fn starts_with(path: &[&str], prefix: &[&str]) -> bool {
    path.len() >= prefix.len() && path.iter().zip(prefix).all(|(left, right)| left == right)
}

proptest! {
    #[test]
    fn a_path_is_valid_if_every_rule_holds(text in "[/a.é\u{301}\u{ad} ]{0,8}|(/a){15,25}|/é{505,515}") {
        let segments: Vec<_> = text.split('/').collect();
        let is_valid = text.starts_with('/')
            && text.len() <= PATH_SIZE_BYTES_MAX
            && segments.len() - 1 <= SEGMENTS_MAX
            && segments.iter().skip(1).all(|segment| !["", ".", ".."].contains(segment))
            && !text.contains('\u{ad}')
            // A combining accent composes with the letter before it, and with nothing else here.
            && !text.contains("a\u{301}");
        prop_assert_eq!(MemoryPath::parse(&text).is_ok(), is_valid, "{:?}", text);
    }

    #[test]
    fn paths_overlap_if_one_has_all_segments_of_the_other(a in small_path(), b in small_path()) {
        let (left, right) = (segments(&a), segments(&b));
        let expected = starts_with(&left, &right) || starts_with(&right, &left);
        prop_assert_eq!(a.overlaps(&b), expected);
        prop_assert_eq!(b.overlaps(&a), expected);
        prop_assert_eq!(a.as_directory().contains(&b), starts_with(&right, &left) && a != b);
    }

    #[test]
    fn ancestors_are_the_proper_prefixes(path in small_path()) {
        let all = segments(&path);
        let expected: Vec<_> = (1..all.len()).map(|n| format!("/{}", all[..n].join("/"))).collect();
        prop_assert_eq!(path.ancestors().collect::<Vec<_>>(), expected);
        prop_assert_eq!(path.file_name(), all[all.len() - 1]);
        let parent = path.parent();
        prop_assert!(parent.contains(&path));
        prop_assert_eq!(segments_of(&parent), &all[..all.len() - 1]);
    }

    #[test]
    fn the_directory_towards_a_path_has_its_first_segments(
        from in small_path(),
        to in small_path(),
        depth in 1_usize..4,
    ) {
        for directory in [from.as_directory(), from.parent(), Directory::root()] {
            let (base, all) = (segments_of(&directory), segments(&to));
            let towards = directory.towards(&to, depth.try_into().unwrap());
            let is_deeper = starts_with(&all, &base) && all.len() > base.len() + depth;
            let expected = is_deeper.then(|| &all[..base.len() + depth]);
            let towards = towards.as_ref().map(segments_of);
            prop_assert_eq!(towards.as_deref(), expected);
        }
    }

    #[test]
    fn a_moved_path_has_other_first_segments(
        path in small_path(),
        from in small_path(),
        to in small_path(),
    ) {
        let (from, to) = (from.as_directory(), to.as_directory());
        let (old, base) = (segments(&path), segments_of(&from));
        let moved = path.moved(&from, &to).unwrap();
        if starts_with(&old, &base) && old.len() > base.len() {
            prop_assert_eq!(segments(&moved), [&segments_of(&to), &old[base.len()..]].concat());
            prop_assert_eq!(moved.moved(&to, &from).unwrap(), path);
        } else {
            prop_assert_eq!(moved, path);
        }
    }

    #[test]
    fn ids_are_base58_with_leading_ones(bits: u128) {
        const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
        let mut digits = [b'1'; 22];
        let mut rest = bits;
        for digit in digits.iter_mut().rev() {
            *digit = ALPHABET[usize::try_from(rest % 58).unwrap()];
            rest /= 58;
        }
        let expected = format!("mem_01{}", str::from_utf8(&digits).unwrap());
        prop_assert_eq!(MemoryId::from_bits(bits).to_string(), expected);
    }

    #[test]
    fn a_text_that_is_an_id_is_written_the_same_way(text in "mem_01[1-9A-Za-z]{21,23}|mem_01[1-3]{22}") {
        if let Ok(id) = text.parse::<MemoryId>() {
            prop_assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn ids_sort_by_their_moment(left in 0..1_i64 << 55, right in 0..1_i64 << 55, random: [u128; 2]) {
        let id = |micros, random| VersionId::new(Timestamp::from_micros(micros), random);
        let (a, b) = (id(left, random[0]), id(right, random[1]));
        prop_assert_eq!(a.created_at(), Timestamp::from_micros(left));
        if left != right {
            prop_assert_eq!(a < b, left < right);
        }
    }

    #[test]
    fn moments_survive_a_round_trip_and_sort_as_text(left: i64, right: i64) {
        let (a, b) = (Timestamp::from_micros(left), Timestamp::from_micros(right));
        prop_assert_eq!(a.to_string().parse::<Timestamp>(), Ok(a));
        prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
        prop_assert!((Timestamp::MIN..=Timestamp::MAX).contains(&a));
    }

    #[test]
    fn an_offset_is_subtracted(micros in 100_000_000_000..4_000_000_000_000_000_i64, hours in -12_i64..=14) {
        let utc = Timestamp::from_micros(micros);
        let local = Timestamp::from_micros(micros + hours * 3_600_000_000).to_string();
        let text = local.replace('Z', &format!("{}{:02}:00", if hours < 0 { '-' } else { '+' }, hours.abs()));
        prop_assert_eq!(text.parse::<Timestamp>(), Ok(utc), "{}", text);
    }

    #[test]
    fn adding_and_subtracting_stay_in_range(micros: i64, span: u64) {
        let (at, span) = (Timestamp::from_micros(micros), Duration::from_micros(span));
        let exact = |sum: i128| {
            i64::try_from(sum.clamp(0, i128::from(Timestamp::MAX.as_micros()))).unwrap()
        };
        let (moment, micros) = (i128::from(at.as_micros()), i128::try_from(span.as_micros()).unwrap());
        prop_assert_eq!(at.plus(span).as_micros(), exact(moment + micros));
        prop_assert_eq!(at.minus(span).as_micros(), exact(moment - micros));
    }

    #[test]
    fn both_ends_belong_to_a_span(first in 0..20_i64, last in 0..20_i64, at in 0..20_i64) {
        let moment = Timestamp::from_micros;
        let span = Span { first: moment(first), last: moment(last) };
        prop_assert_eq!(span.contains(moment(at)), first <= at && at <= last);
        prop_assert!(Span::default().contains(moment(at)));
    }

    #[test]
    fn a_stamp_is_later_than_the_newest_change(newest in prop::option::of((1..9_u64, 0..9_i64)), now in 0..9_i64) {
        let newest = newest.map(|(sequence, at)| (Sequence(sequence), Timestamp::from_micros(at)));
        let now = Timestamp::from_micros(now);
        let stamp = Stamp::after(newest, now);
        prop_assert!(stamp.at >= now);
        prop_assert_eq!(stamp.previous, newest.map(|(_, at)| at));
        match newest {
            Some((sequence, at)) => {
                prop_assert_eq!(stamp.sequence.0, sequence.0 + 1);
                prop_assert!(stamp.at > at && (stamp.at == now || stamp.at == at.next()));
            }
            None => prop_assert_eq!((stamp.sequence, stamp.at), (Sequence(1), now)),
        }
    }

    #[test]
    fn every_host_name_becomes_an_actor_that_is_read_back(text in "\\PC{0,80}") {
        let name = PrincipalName::from_host(&text);
        for actor in [Actor::User(name.clone()), Actor::ServiceAccount(name)] {
            prop_assert_eq!(actor.to_string().parse::<Actor>(), Ok(actor));
        }
    }

    #[test]
    fn actors_of_different_kinds_never_read_the_same(bits: u128, text in "[a-z]{1,8}") {
        let actors = [
            Actor::Session(SessionId::from_bits(bits)),
            Actor::ApiKey(KeyId::from_bits(bits)),
            Actor::User(PrincipalName::parse(&text).unwrap()),
            Actor::ServiceAccount(PrincipalName::parse(&text).unwrap()),
        ];
        for actor in &actors {
            let same = actors.iter().filter(|other| other.to_string() == actor.to_string());
            prop_assert_eq!(same.count(), 1);
            prop_assert_eq!(&actor.to_string().parse::<Actor>().unwrap(), actor);
        }
    }

    #[test]
    fn a_slug_is_a_file_name_and_its_own_slug(text in "\\PC{1,40}") {
        let slugged = slug(&Name::new(&*text).unwrap());
        prop_assert!(!slugged.is_empty());
        prop_assert!(slugged.split('-').all(|word| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        }), "{}", slugged);
        prop_assert_eq!(slug(&Name::new(&*slugged).unwrap()), slugged);
    }

    #[test]
    fn lengths_are_counted_in_characters(text in "[aé日😀]{1020,1028}") {
        prop_assert_eq!(Description::new(&*text).is_ok(), text.chars().count() <= 1024);
        let pair = [("k".to_owned(), text.chars().take(516).skip(2).collect::<String>())];
        let is_short = pair[0].1.chars().count() <= 512;
        prop_assert_eq!(Metadata::new(pair.into()).is_ok(), is_short);
    }

    #[test]
    fn content_is_any_utf8_without_nul(bytes in prop::collection::vec(prop_oneof![Just(0_u8), any::<u8>(), 97..100_u8], 0..12)) {
        let text = String::from_utf8(bytes.clone()).ok().filter(|text| !text.contains('\0'));
        let content = Content::from_bytes(&bytes).ok();
        prop_assert_eq!(content.as_ref().map(|content| content.as_str().to_owned()), text);
        if let Some(content) = content {
            prop_assert_eq!(content.hash().to_string().parse::<ContentHash>(), Ok(content.hash()));
        }
    }

    #[test]
    fn secret_hashes_compare_like_their_bytes(left: [u8; 32], at in 0..32_usize, flip: u8) {
        let mut right = left;
        right[at] ^= flip;
        let equal = SecretHash::from_bytes(left) == SecretHash::from_bytes(right);
        prop_assert_eq!(equal, flip == 0);
    }
}

/// The units of [`timeframe::span`] and their lengths in seconds.
const UNITS: [(&str, u64); 9] = [
    ("s", 1),
    ("min", 60),
    ("hours", 3600),
    ("d", 86_400),
    ("day", 86_400),
    ("weeks", 604_800),
    ("month", 2_592_000),
    ("y", 31_536_000),
    ("years", 31_536_000),
];

proptest! {
    #[test]
    fn a_span_is_its_number_times_its_unit(count in 0..5000_u32, unit in 0..UNITS.len(), gap in " ?") {
        let (word, seconds) = UNITS[unit];
        let text = format!("{count}{gap}{word}");
        let expected = Duration::from_secs(u64::from(count) * seconds);
        prop_assert_eq!(timeframe::span(&text), Some(expected), "{}", text);
        let now: Timestamp = "2026-11-15T12:30:00Z".parse().unwrap();
        for text in [text.clone(), format!("{text} ago"), format!(" {} ", text.to_uppercase())] {
            prop_assert_eq!(timeframe::since(&text, now), Some(now.minus(expected)), "{}", text);
        }
    }

    #[test]
    fn words_for_days_are_those_of_the_calendar(days in 0..40_000_i64, rest in 0..86_400_000_000_i64) {
        use jiff::tz::TimeZone;
        let now = Timestamp::from_micros(days * 86_400_000_000 + rest);
        let date = jiff::Timestamp::from_microsecond(now.as_micros()).unwrap().to_zoned(TimeZone::UTC).date();
        let start = |date: jiff::civil::Date| {
            let start = date.to_zoned(TimeZone::UTC).unwrap().timestamp();
            Some(Timestamp::from_micros(start.as_microsecond()))
        };
        prop_assert_eq!(timeframe::since("today", now), start(date));
        prop_assert_eq!(timeframe::since("this month", now), start(date.first_of_month()));
        prop_assert_eq!(timeframe::since("this year", now), start(date.first_of_year()));
        let monday = date.nth_weekday(-1, jiff::civil::Weekday::Monday).unwrap();
        let monday = if date.weekday() == jiff::civil::Weekday::Monday { date } else { monday };
        prop_assert_eq!(timeframe::since("this week", now), start(monday));
        prop_assert_eq!(timeframe::since(&date.to_string(), now), start(date));
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in "\\PC{0,20}|(last |a |ten )?[0-9]{0,12} ?[a-z]{0,7}( ago)?") {
        let now: Timestamp = "2026-11-15T12:30:00Z".parse().unwrap();
        let since = timeframe::since(&text, now);
        if let Some(span) = timeframe::span(&text.to_lowercase()) {
            prop_assert_eq!(since, Some(now.minus(span)));
        }
    }
}

/// Lines that repeat, so that there is more than one way to compare them.
fn lines() -> impl Strategy<Value = String> {
    prop::collection::vec("[ab]{0,1}", 0..12).prop_map(|lines| lines.join("\n"))
}

/// Applies a unified diff to a text, as `patch` does.
fn patched(old: &str, diff: &Diff, context: usize) -> String {
    let old: Vec<_> = old.split_inclusive('\n').collect();
    let mut new = String::new();
    let mut position = 0;
    for hunk in diff.hunks(context) {
        new.extend(old.iter().take(hunk.old.start).skip(position).copied());
        for line in &hunk.lines {
            match line {
                Line::Kept(text) | Line::Added(text) => new.push_str(text),
                Line::Removed(_) => {}
            }
        }
        position = hunk.old.end;
    }
    new.extend(old.iter().skip(position).copied());
    new
}

proptest! {
    #[test]
    fn a_diff_applied_to_the_old_text_gives_the_new_one(old in lines(), new in lines(), context in 0..4_usize) {
        let diff = Diff::new(&old, &new);
        prop_assert_eq!(patched(&old, &diff, context), new.clone());
        let count = |text: &str| text.split_inclusive('\n').count();
        let growth = count(&old) + diff.added_count() - diff.removed_count();
        prop_assert_eq!(growth, count(&new));
    }

    #[test]
    fn hunks_cover_the_lines_that_they_claim(old in lines(), new in lines(), context in 0..4_usize) {
        let diff = Diff::new(&old, &new);
        let mut end = 0;
        for hunk in diff.hunks(context) {
            let count = |wanted: fn(&Line<'_>) -> bool| hunk.lines.iter().filter(|line| wanted(line)).count();
            prop_assert_eq!(count(|line| !matches!(line, Line::Added(_))), hunk.old.len());
            prop_assert_eq!(count(|line| !matches!(line, Line::Removed(_))), hunk.new.len());
            prop_assert!(hunk.old.start >= end, "hunks overlap");
            end = hunk.old.end;
        }
    }

    #[test]
    fn conflicts_are_disjoint_and_everything_else_is_equal(base in lines(), ours in lines(), theirs in lines()) {
        let Merged::Conflicted(conflicts) = merge(&base, &ours, &theirs) else { return Ok(()) };
        prop_assert!(!conflicts.is_empty());
        let split = |text: &str| text.split_inclusive('\n').map(str::to_owned).collect::<Vec<_>>();
        let [base, ours, theirs] = [&base, &ours, &theirs].map(|text| split(text));
        let mut end = [0; 3];
        for conflict in conflicts {
            let ranges = [&conflict.base, &conflict.ours, &conflict.theirs];
            for (range, end) in ranges.iter().zip(&mut end) {
                prop_assert!(range.start >= *end, "conflicts overlap");
                *end = range.end;
            }
            let base = &base[conflict.base];
            let (ours, theirs) = (&ours[conflict.ours], &theirs[conflict.theirs]);
            prop_assert!(ours != theirs && ours != base && theirs != base, "this is no conflict");
        }
    }

    #[test]
    fn a_clean_merge_can_be_merged_again(base in lines(), ours in lines(), theirs in lines()) {
        if let Merged::Clean(merged) = merge(&base, &ours, &theirs) {
            // A client that retries after a lost answer merges its text into the result.
            prop_assert_eq!(merge(&ours, &merged, &ours), Merged::Clean(merged.clone()));
            prop_assert_eq!(merge(&base, &merged, &merged), Merged::Clean(merged));
        }
    }
}
