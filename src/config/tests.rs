//! Tests of the layers: each key from each of them, their order, and what is refused.

use std::{fs, path::PathBuf};

use super::{value::Scalar, *};

/// A value other than the default for every key.
const OTHER: &[(&str, &str)] = &[
    ("server.listen", "127.0.0.1:0"),
    ("server.grpc_listen", "[::1]:7421"),
    ("server.drain_ms", "250"),
    ("database.url", "sqlite:/var/lib/sandkeep/data.db"),
    ("database.durability", "relaxed"),
    ("database.max_bytes", "1048576"),
    ("database.readers", "2"),
    ("worker.heartbeat_interval_ms", "50"),
    ("worker.session_timeout_ms", "20_000"),
    ("engine.lanes", "3"),
    ("engine.inbox", "64"),
    ("engine.cache_bytes", "2097152"),
    ("engine.cancel_grace_ms", "100"),
    ("engine.wind_down_timeout_ms", "2000"),
    ("engine.sweep_ms", "500"),
    ("sandbox.memory_bytes", "134217728"),
    ("sandbox.max_concurrent", "7"),
    ("sandbox.threads", "3"),
    ("sandbox.cpu_ms", "60000"),
    ("sandbox.module_memory_bytes", "1048576"),
    ("sandbox.module_size_bytes", "2048"),
    ("sandbox.log_bytes", "1024"),
    ("sandbox.random_bytes", "1024"),
    ("sandbox.host_handles", "64"),
    ("sandbox.egress_requests", "3"),
    ("sandbox.egress_concurrent", "2"),
    ("sandbox.egress_body_bytes", "65536"),
    ("sandbox.egress_timeout_ms", "500"),
    ("sandbox.egress_ca_file", "/etc/sandkeep/roots.pem"),
    ("sandbox.allow_private_egress", "true"),
    ("sandbox.cache_bytes", "1048576"),
    ("sandbox.artefact_dir", "/var/lib/sandkeep/artefacts"),
    ("sandbox.artefact_bytes", "1048576"),
    ("sandbox.compile_cpu_ms", "3000"),
    ("sandbox.compile_wall_ms", "4000"),
    ("sandbox.compile_memory_bytes", "536870912"),
    ("sandbox.compile_at_once", "3"),
    ("sandbox.tick_ms", "5"),
    ("key.file", "/etc/sandkeep/key"),
    ("key.secret", "0123456789abcdef0123456789abcdef"),
    ("log.format", "json"),
    ("log.filter", "warn"),
];

struct Folder(tempfile::TempDir);

impl Folder {
    fn file(text: &str) -> (Self, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sandkeep.toml");
        fs::write(&path, text).unwrap();
        (Self(folder), path)
    }

    fn shown(&self, error: &Error) -> String {
        error.to_string().replace(&format!("{}/", self.0.path().display()), "")
    }
}

fn from_file(text: &str) -> Result<Loaded, String> {
    let (folder, path) = Folder::file(text);
    load(&Layers { file: Some(path), ..Layers::default() }).map_err(|error| folder.shown(&error))
}

fn from_variable(name: &str, value: &str) -> Result<Loaded, String> {
    load(&Layers { variables: vec![(name.to_owned(), value.to_owned())], ..Layers::default() })
        .map_err(|error| error.to_string())
}

fn from_flag(path: &str, value: &str) -> Result<Loaded, String> {
    let flags = vec![("--set".to_owned(), path.to_owned(), value.to_owned())];
    load(&Layers { flags, ..Layers::default() }).map_err(|error| error.to_string())
}

#[track_caller]
fn check_refused(found: Result<Loaded, String>, sentence: &str) {
    assert_eq!(found.map(|loaded| loaded.config).unwrap_err(), sentence);
}

#[test]
fn every_key_is_set_by_every_layer() {
    let keys: Vec<_> = KEYS.iter().map(Setting::path).collect();
    assert_eq!(keys, OTHER.iter().map(|(path, _)| path.to_owned()).collect::<Vec<_>>(), "the table has every key");
    for (setting, (path, value)) in KEYS.iter().zip(OTHER) {
        let written = if setting.scalar != Scalar::Text { value.to_string() } else { format!("\"{value}\"") };
        let file = from_file(&format!("[{}]\n{} = {written}\n", setting.section, setting.name)).unwrap();
        let variable = from_variable(&setting.variable(), value).unwrap();
        let flag = from_flag(path, value).unwrap();
        assert_ne!(file.config, Config::default(), "{path}");
        assert_eq!(file.config, variable.config, "{path}");
        assert_eq!(file.config, flag.config, "{path}");
        let plain = value.replace('_', "");
        let shown = file.config.text_of(setting).unwrap();
        assert!(setting.secret || shown == if setting.scalar == Scalar::Integer { plain } else { value.to_string() });
        assert!(file.origins[*path].to_string().ends_with("sandkeep.toml:2"));
        assert_eq!(variable.origins[*path], Origin::Variable(setting.variable()));
        assert_eq!(flag.origins[*path], Origin::Flag("--set".to_owned()));
    }
}

#[test]
fn a_later_layer_wins() {
    let (_folder, path) = Folder::file("[engine]\nlanes = 2\ninbox = 32\nsweep_ms = 1_000\n[server]\ndrain_ms = 1\n");
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let layers = Layers {
        file: Some(path),
        variables: vec![
            variable("SANDKEEP_ENGINE__INBOX", "64"),
            variable("SANDKEEP_ENGINE__SWEEP_MS", "2000"),
            variable("SANDKEEP_ENGINE__LANES", ""),
        ],
        flags: vec![("--set".to_owned(), "engine.sweep_ms".to_owned(), "3000".to_owned())],
    };
    let Config { engine, server, .. } = load(&layers).unwrap().config;
    assert_eq!((engine.inbox, engine.sweep_ms, server.drain_ms), (64, 3_000, 1));
    assert_eq!(engine.lanes, None, "an empty variable unsets");
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_and_their_place() {
    check_refused(
        from_file("[worker]\nsesion_timeout_ms = 5\n"),
        "sandkeep.toml:2: unknown key `worker.sesion_timeout_ms`; did you mean `worker.session_timeout_ms`?",
    );
    check_refused(
        from_file("\n[engine]\ndrain_ms = 5\n"),
        "sandkeep.toml:3: unknown key `engine.drain_ms`; did you mean `server.drain_ms`?",
    );
    check_refused(from_file("listen = 5\n"), "sandkeep.toml:1: unknown key `listen`; did you mean `server.listen`?");
    check_refused(from_file("[zzz]\n"), "sandkeep.toml:1: unknown key `zzz`");
    check_refused(from_file("[zzz]\na = [1]\n"), "sandkeep.toml:2: unknown key `zzz.a`");
    check_refused(
        from_variable("SANDKEEP_SERVER__LISTN", "x"),
        "variable SANDKEEP_SERVER__LISTN: unknown key `server.listn`; did you mean `server.listen`?",
    );
    check_refused(from_flag("log.fromat", "x"), "flag --set: unknown key `log.fromat`; did you mean `log.format`?");
    assert!(from_variable("SANDKEEP_TOKEN", "x").is_ok(), "a client's variable is not a key");
    assert!(from_variable("PATH__X", "x").is_ok());
}

#[test]
fn unfit_values_are_refused_with_their_key() {
    for (text, sentence) in [
        ("[server]\nlisten = 7420", "sandkeep.toml:2: `server.listen` must be a text, not a number"),
        ("[server]\ndrain_ms = \"5\"", "sandkeep.toml:2: `server.drain_ms` must be a number, not a text"),
        ("[server]\ndrain_ms = 1.5", "sandkeep.toml:2: `server.drain_ms` must be a text or a whole number"),
        ("[server]\ndrain_ms = -1", "sandkeep.toml:2: `server.drain_ms` must be a whole number that is not negative"),
        ("[server]\ndrain_ms = 3_600_001", "sandkeep.toml:2: `server.drain_ms` must be within 0 and 3600000"),
        ("[database]\nreaders = 0", "sandkeep.toml:2: `database.readers` must be within 1 and 64"),
        ("[log]\nformat = \"xml\"", "sandkeep.toml:2: `log.format` must be one of `text`, `json`"),
        ("[log]\nfilter = true", "sandkeep.toml:2: `log.filter` must be a text or a whole number"),
        (
            "[sandbox]\nallow_private_egress = \"yes\"",
            "sandkeep.toml:2: `sandbox.allow_private_egress` must be true or false, without quotes",
        ),
        ("[log]\nfilter = \"\"", "sandkeep.toml:2: `log.filter` must not be empty"),
    ] {
        check_refused(from_file(text), sentence);
    }
    check_refused(
        from_variable("SANDKEEP_WORKER__SESSION_TIMEOUT_MS", "30s"),
        "variable SANDKEEP_WORKER__SESSION_TIMEOUT_MS: `worker.session_timeout_ms` must be a whole number that is not negative",
    );
    assert!(from_file("[server\n").unwrap_err().starts_with("sandkeep.toml:1: "));
    assert!(
        from_file("[log]\nformat = \"text\"\nformat = \"json\"")
            .unwrap_err()
            .starts_with("sandkeep.toml:3: duplicate key")
    );
    let missing = load(&Layers { file: Some("/nowhere/sandkeep.toml".into()), ..Layers::default() }).unwrap_err();
    assert_eq!(missing.to_string(), "cannot read `/nowhere/sandkeep.toml`");
}

#[test]
fn values_that_do_not_fit_together_are_refused() {
    check_refused(
        from_flag("server.listen", "0.0.0.0:7420"),
        "`server.listen` is 0.0.0.0:7420, but no credential is configured: an open server listens on loopback addresses only",
    );
    check_refused(
        from_flag("worker.session_timeout_ms", "5000"),
        "`worker.session_timeout_ms` must be longer than `worker.heartbeat_interval_ms`",
    );
    check_refused(from_flag("database.url", "sandkeep.db"), "`database.url` must read `sqlite:PATH`");
    check_refused(
        from_flag("database.url", "postgres://localhost/x"),
        "`database.url` names PostgreSQL, which is not supported yet",
    );
    check_refused(from_flag("key.secret", "short"), "`key.secret` must have at least 32 characters");
    check_refused(
        from_file("[key]\nfile = \"a\"\nsecret = \"0123456789abcdef0123456789abcdef\""),
        "`key.file` and `key.secret` are both set; there is one server key",
    );
    check_refused(
        from_flag("sandbox.memory_bytes", "2097152"),
        "`sandbox.memory_bytes` must hold at least one `sandbox.module_memory_bytes`",
    );
}

#[test]
fn the_path_of_the_database_is_read() {
    for (url, path) in [("sqlite:data.db", "data.db"), ("sqlite:/a/b.db", "/a/b.db"), ("sqlite:///a/b.db", "/a/b.db")] {
        let database = Database { url: url.to_owned(), ..Database::default() };
        assert_eq!(database.sqlite_path().unwrap(), PathBuf::from(path), "{url}");
    }
}

#[test]
fn printed_settings_read_back_and_hide_secrets() {
    let flags: Vec<_> = OTHER
        .iter()
        .filter(|(path, _)| *path != "key.file")
        .map(|(path, value)| ("--set".to_owned(), path.to_string(), value.to_string()))
        .collect();
    let loaded = load(&Layers { flags, ..Layers::default() }).unwrap();
    let printed = loaded.to_string();
    assert!(!printed.contains("0123456789abcdef") && !format!("{loaded:?}").contains("0123456789abcdef"), "{printed}");
    assert!(printed.contains("# secret = \"***\"  # flag --set"), "{printed}");
    let mut again = from_file(&printed).unwrap().config;
    again.key = loaded.config.key.clone();
    assert_eq!(again, loaded.config);
    assert_eq!(from_file(&Loaded::default().to_string()).unwrap().config, Config::default());
}

#[test]
fn the_server_key_has_a_variable_of_its_own() {
    let loaded = from_variable("SANDKEEP_SERVER_KEY", "0123456789abcdef0123456789abcdef").unwrap();
    assert_eq!(loaded.config.key.secret.unwrap().reveal(), "0123456789abcdef0123456789abcdef");
}

/// The table in the docs has exactly the keys, defaults and units of the code.
#[test]
fn the_docs_list_every_key() {
    let docs = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configuration.md")).unwrap();
    let rows: Vec<&str> = docs.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> = KEYS
        .iter()
        .map(|setting| {
            let default = Config::default().text_of(setting).map_or("not set".to_owned(), |text| {
                let mib = text
                    .parse::<u64>()
                    .ok()
                    .filter(|_| setting.unit == "bytes")
                    .map(|bytes| bytes as f64 / 1_048_576.0);
                format!("`{text}`{}", mib.map(|mib| format!(" ({mib} MiB)")).unwrap_or_default())
            });
            let bounds = setting.range.map(|(least, greatest)| format!(", {least} to {greatest}")).unwrap_or_default();
            let kind = format!("{}{bounds}", setting.unit);
            format!("| `{}` | {} | {default} | {kind} |", setting.path(), setting.meaning())
        })
        .collect();
    assert_eq!(rows, expected, "docs/configuration.md should have:\n{}", expected.join("\n"));
}
