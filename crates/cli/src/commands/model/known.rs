//! Models that can be installed by name.
//!
//! A name stands for exact bytes: the addresses contain a revision, and every file has its SHA-256 here. A model
//! whose digests cannot be established from several public sources does not get a name.

/// A model with its files.
pub(super) struct KnownModel {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Where the files are.
    pub(super) base: &'static str,
    pub(super) files: &'static [KnownFile],
}

/// A file below the base of its model.
pub(super) struct KnownFile {
    pub(super) path: &'static str,
    pub(super) sha256: &'static str,
}

pub(super) const MODELS: &[KnownModel] = &[
    KnownModel {
        name: "all-MiniLM-L6-v2",
        about: "transformer, English, 91 MB",
        base: "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/\
               1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
        files: &[
            KnownFile {
                path: "model.safetensors",
                sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            },
            KnownFile {
                path: "tokenizer.json",
                sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            },
            KnownFile {
                path: "config.json",
                sha256: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            },
            KnownFile {
                path: "sentence_bert_config.json",
                sha256: "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
            },
            KnownFile {
                path: "1_Pooling/config.json",
                sha256: "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
            },
        ],
    },
    KnownModel {
        name: "potion-base-8M",
        about: "static table, English, 31 MB",
        base: "https://huggingface.co/minishlab/potion-base-8M/resolve/\
               bf8b056651a2c21b8d2565580b8569da283cab23",
        files: &[
            KnownFile {
                path: "model.safetensors",
                sha256: "f65d0f325faadc1e121c319e2faa41170d3fa07d8c89abd48ca5358d9a223de2",
            },
            KnownFile {
                path: "tokenizer.json",
                sha256: "e67e803f624fb4d67dea1c730d06e1067e1b14d830e2c2202569e3ef0f70bb50",
            },
            KnownFile {
                path: "config.json",
                sha256: "2a6ac0e9aaa356a68a5688070db78fc3a464fefe85d2f06a1905ce3718687553",
            },
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::ModelName;

    #[test]
    fn names_are_names_and_digests_are_digests() {
        for model in MODELS {
            ModelName::parse(model.name).unwrap();
            assert!(model.base.starts_with("https://"), "{}", model.base);
            for file in model.files {
                let is_hex = file.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
                assert!(file.sha256.len() == 64 && is_hex, "{}", file.path);
            }
        }
    }
}
