use quipu_core::{Error, ErrorKind};
use rusqlite::ffi;

use super::super::codec::Damaged;
use super::super::error::IndexError;

fn sqlite(code: i32) -> IndexError {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), None).into()
}

/// Damage is what makes the file be replaced. If it were reported as anything else, every search
/// would fail until somebody removes the file.
#[test]
fn a_file_that_is_no_sound_database_is_damaged() {
    for code in [
        ffi::SQLITE_CORRUPT,
        ffi::SQLITE_NOTADB,
        ffi::SQLITE_CONSTRAINT,
        ffi::SQLITE_CONSTRAINT_PRIMARYKEY,
        ffi::SQLITE_MISMATCH,
        ffi::SQLITE_ERROR,
        ffi::SQLITE_IOERR_SHORT_READ,
        ffi::SQLITE_CORRUPT_INDEX,
    ] {
        assert!(matches!(sqlite(code), IndexError::Damaged), "{code}");
    }
    assert!(matches!(rusqlite::Error::InvalidQuery.into(), IndexError::Damaged));
    let wrong_type = rusqlite::Error::IntegralValueOutOfRange(0, 9);
    assert!(matches!(wrong_type.into(), IndexError::Damaged));
    assert!(matches!(IndexError::from(Damaged), IndexError::Damaged));
}

/// A search goes on in memory, and nothing is thrown away.
#[test]
fn a_file_that_cannot_be_written_now_is_kept() {
    for (code, kind) in [
        (ffi::SQLITE_FULL, ErrorKind::StorageFull),
        (ffi::SQLITE_READONLY, ErrorKind::StorageUnavailable),
        (ffi::SQLITE_READONLY_DBMOVED, ErrorKind::StorageUnavailable),
        (ffi::SQLITE_PERM, ErrorKind::StorageUnavailable),
        (ffi::SQLITE_BUSY, ErrorKind::StorageBusy),
        (ffi::SQLITE_BUSY_SNAPSHOT, ErrorKind::StorageBusy),
        (ffi::SQLITE_LOCKED, ErrorKind::StorageBusy),
        (ffi::SQLITE_IOERR_WRITE, ErrorKind::StorageUnavailable),
        (ffi::SQLITE_IOERR_FSYNC, ErrorKind::StorageUnavailable),
        (ffi::SQLITE_IOERR_SHMSIZE, ErrorKind::StorageUnavailable),
    ] {
        let IndexError::NotWritable(error) = sqlite(code) else { panic!("{code}") };
        assert_eq!(*error.kind(), kind, "{code}");
    }
}

#[test]
fn other_failures_are_reported_with_a_hint() {
    for code in [ffi::SQLITE_NOMEM, ffi::SQLITE_CANTOPEN, ffi::SQLITE_INTERRUPT] {
        let IndexError::Failed(error) = sqlite(code) else { panic!("{code}") };
        assert_eq!(*error.kind(), ErrorKind::StorageUnavailable);
        assert!(error.hint().is_some_and(|hint| hint.contains("index.db")), "{error:?}");
    }
}

/// What reaches people says what to do, and no path of the machine.
#[test]
fn errors_of_the_index_tell_people_what_to_do() {
    let damaged = IndexError::Damaged.into_error();
    assert_eq!(*damaged.kind(), ErrorKind::StorageUnavailable);
    assert!(damaged.hint().is_some_and(|hint| hint.contains("remove `index.db`")));
    assert_eq!(*IndexError::Outdated.into_error().kind(), ErrorKind::StorageBusy);
    let given = Error::not_found("no memory lives here");
    let passed = IndexError::from(given).into_error();
    assert_eq!(*passed.kind(), ErrorKind::NotFound);
    let full = sqlite(ffi::SQLITE_FULL).into_error();
    assert_eq!(*full.kind(), ErrorKind::StorageFull);
    assert!(!full.to_string().contains('/'), "{full}");
}
