//! Says when to look at the folder again.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout_at},
};

/// How long it must be quiet after a change: who writes a file writes more than once.
const QUIET: Duration = Duration::from_millis(150);

/// How long a change is held back at most, however busy it is.
const QUIET_MAX: Duration = Duration::from_secs(2);

/// How often to look anyway: for what no watcher tells, such as files behind links and folders that are new.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Watches a folder.
pub(super) struct Watch {
    dir: PathBuf,
    watcher: Option<RecommendedWatcher>,
    told: mpsc::Receiver<()>,
}

impl Watch {
    /// Begins to watch. A machine without a watcher is looked at every two seconds.
    pub(super) fn start(dir: &Path) -> Self {
        // One place is enough: a second change before the look is the same news.
        let (tell, told) = mpsc::channel(1);
        let watcher = notify::recommended_watcher(move |_: notify::Result<notify::Event>| {
            // A full channel has told already.
            let _ = tell.try_send(());
        });
        let mut watch = Self { dir: dir.to_owned(), watcher: watcher.ok(), told };
        watch.add_folders();
        watch
    }

    /// Resolves when something may have changed.
    pub(super) async fn changed(&mut self) {
        let look = Instant::now() + LOOK_EVERY;
        let news = timeout_at(look, self.told.recv()).await;
        match news {
            Ok(Some(())) => self.quiet().await,
            Ok(None) => sleep_until(look).await,
            Err(_) => {}
        }
        self.add_folders();
    }

    async fn quiet(&mut self) {
        let last = Instant::now() + QUIET_MAX;
        while let Ok(Some(())) = timeout_at(last.min(Instant::now() + QUIET), self.told.recv()).await {
            if Instant::now() >= last {
                return;
            }
        }
    }

    /// Watches the folders that are there. Watching one again changes nothing, and one that was replaced is found.
    fn add_folders(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        for folder in ["modules", "workflows"] {
            // One that is not there is looked for again at the next round.
            let _ = watcher.watch(&self.dir.join(folder), RecursiveMode::NonRecursive);
        }
    }
}
