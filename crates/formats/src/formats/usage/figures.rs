//! The raw figures of a reply, and how a later usage object replaces an earlier one.
//!
//! The last figure wins, member by member: a stream's first usage object is a forecast, its last
//! one the bill. One exception: zeros in a usage object with an empty prompt are ignored. Some
//! services repeat the usage object with missing members set to zero; as no prompt is empty, those
//! zeros mean nothing.

use super::passes::Passes;

/// Raw figures, named by meaning, independent of the formats' names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figure {
    Input,
    CacheRead,
    CacheWrite,
    CacheWrite5m,
    CacheWrite1h,
    Output,
    Total,
    Reasoning,
    ImageInput,
    ImageCached,
    ImageOutput,
    AudioInput,
    AudioCached,
    AudioOutput,
    ToolInput,
    Searches,
    DrawnInput,
    DrawnInputImage,
    DrawnCached,
    DrawnCachedImage,
    DrawnOutput,
    DrawnOutputImage,
    Seconds,
    Queries,
}

const FIGURES: usize = Figure::Queries as usize + 1;
/// This many figures at the beginning are the prompt's.
const PROMPT: usize = Figure::CacheWrite1h as usize + 1;

/// The subject of a list of counts by kind of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Modality {
    Input,
    Cached,
    Output,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct UsageFigures {
    known: Set,
    /// Those of the usage object that is being read.
    reported: Set,
    kinds: Kinds,
    passes: Passes,
    /// The last usage object with an output had an empty prompt beside it.
    promptless: bool,
}

/// A set of figures, some of which are present. A stream keeps three for its whole life: half the
/// size of a list of options.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Set {
    values: [u64; FIGURES],
    /// One bit for each that is present.
    there: u32,
}

impl Set {
    fn get(&self, index: usize) -> Option<u64> {
        (self.there >> index & 1 == 1).then(|| self.values[index])
    }

    const fn put(&mut self, index: usize, value: u64) {
        self.values[index] = value;
        self.there |= 1 << index;
    }

    const fn drop(&mut self, index: usize) {
        self.there &= !(1 << index);
    }
}

/// A list of counts by kind of content, as far as it is read.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Kinds {
    is_image: bool,
    is_audio: bool,
    count: u64,
    images: u64,
    audio: u64,
}

impl UsageFigures {
    pub(super) fn get(&self, figure: Figure) -> Option<u64> {
        self.known.get(figure as usize)
    }

    /// The figure, or zero.
    pub(super) fn of(&self, figure: Figure) -> u64 {
        self.get(figure).unwrap_or(0)
    }

    /// Whether input or output was reported.
    pub(super) fn any(&self) -> bool {
        self.get(Figure::Input).is_some() || self.get(Figure::Output).is_some()
    }

    /// Whether the provider reported an output without any prompt, together.
    pub(super) const fn promptless(&self) -> bool {
        self.promptless
    }

    /// Whether the output was reported, possibly only as the rest of a total.
    pub(super) fn tell_output(&self) -> bool {
        self.get(Figure::Output).is_some() || self.get(Figure::Total).is_some()
    }

    pub(super) const fn tell(&mut self, figure: Figure, value: Option<u64>) {
        if let Some(value) = value {
            self.reported.put(figure as usize, value);
        }
    }

    /// The usage object is complete: its figures replace the known ones. Returns whether it
    /// contained any that mean something: as no prompt is empty, zeros alone do not.
    pub(super) fn take_over(&mut self) -> bool {
        let reported = std::mem::take(&mut self.reported);
        let prompt = || (0..PROMPT).filter_map(|index| reported.get(index));
        let forgotten = prompt().next().is_some() && prompt().all(|value| value == 0);
        let is_given = |figure: Figure| reported.get(figure as usize).is_some_and(|n| n > 0);
        let compacted = self.passes.take_over();
        let nothing = forgotten && !is_given(Figure::Output) && !compacted;
        if reported.get(Figure::Output as usize).is_some() {
            self.promptless = forgotten && is_given(Figure::Output);
        }
        self.shrink_split(&reported);
        let summed = [Figure::Input, Figure::Output].map(|figure| reported.get(figure as usize));
        if !nothing
            && summed.iter().any(Option::is_some)
            && reported.get(Figure::Total as usize).is_none()
        {
            // The known total is of other sums.
            self.known.drop(Figure::Total as usize);
        }
        for index in 0..FIGURES {
            let Some(value) = reported.get(index) else { continue };
            let blank = value == 0 && (nothing || (forgotten && index < PROMPT));
            if !blank || self.known.get(index).is_none() {
                self.known.put(index, value);
            }
        }
        reported.there != 0 && !nothing
    }

    /// A sum of cache writes without its split replaces the known split if it is less.
    fn shrink_split(&mut self, reported: &Set) {
        let [five, hour] =
            [Figure::CacheWrite5m, Figure::CacheWrite1h].map(|figure| figure as usize);
        let Some(sum) = reported.get(Figure::CacheWrite as usize).filter(|sum| *sum > 0) else {
            return;
        };
        if reported.get(five).is_some() || reported.get(hour).is_some() {
            return;
        }
        let (had_five, had_hour) =
            (self.known.get(five).unwrap_or(0), self.known.get(hour).unwrap_or(0));
        if sum < had_five.saturating_add(had_hour) {
            let keep = had_hour.min(sum);
            self.known.put(five, sum - keep);
            self.known.put(hour, keep);
        }
    }

    /// Drops the figures of an event that were outside a complete usage object.
    pub(super) fn forget(&mut self) {
        self.reported.there = 0;
        self.kinds = Kinds::default();
        self.passes.forget();
    }

    /// The passes over models that the reply took.
    pub(super) const fn passes(&self) -> &Passes {
        &self.passes
    }

    pub(super) const fn passes_mut(&mut self) -> &mut Passes {
        &mut self.passes
    }

    pub(super) fn modality(&mut self, name: &[u8]) {
        self.kinds.is_image = name.eq_ignore_ascii_case(b"IMAGE");
        self.kinds.is_audio = name.eq_ignore_ascii_case(b"AUDIO");
    }

    pub(super) fn modality_count(&mut self, count: Option<u64>) {
        self.kinds.count = count.unwrap_or(0);
    }

    pub(super) fn modality_item(&mut self) {
        let kinds = &mut self.kinds;
        let count = std::mem::take(&mut kinds.count);
        if std::mem::take(&mut kinds.is_image) {
            kinds.images = kinds.images.saturating_add(count);
        }
        if std::mem::take(&mut kinds.is_audio) {
            kinds.audio = kinds.audio.saturating_add(count);
        }
    }

    pub(super) fn modalities(&mut self, of: Modality) {
        let Kinds { images, audio, .. } = std::mem::take(&mut self.kinds);
        let (image, sound) = match of {
            Modality::Input => (Figure::ImageInput, Figure::AudioInput),
            Modality::Cached => (Figure::ImageCached, Figure::AudioCached),
            Modality::Output => (Figure::ImageOutput, Figure::AudioOutput),
        };
        self.tell(image, Some(images));
        self.tell(sound, Some(audio));
    }
}

#[cfg(test)]
mod tests {
    use super::Figure::{CacheRead, CacheWrite, CacheWrite1h, CacheWrite5m, Input, Output};
    use super::{Figure, UsageFigures};

    fn after(objects: &[&[(Figure, u64)]]) -> UsageFigures {
        let mut figures = UsageFigures::default();
        for object in objects {
            for (figure, value) in *object {
                figures.tell(*figure, Some(*value));
            }
            figures.take_over();
        }
        figures
    }

    #[test]
    fn the_last_figure_wins_member_by_member() {
        let figures = after(&[
            &[(Input, 100), (Output, 900), (CacheRead, 50)],
            &[(Output, 7), (CacheRead, 20)],
        ]);
        assert_eq!((figures.of(Input), figures.of(Output), figures.of(CacheRead)), (100, 7, 20));
        let figures = after(&[
            &[(Input, 100), (Output, 9), (CacheRead, 50)],
            &[(Input, 150), (CacheRead, 0)],
        ]);
        assert_eq!((figures.of(Input), figures.of(Output), figures.of(CacheRead)), (150, 9, 0));
        assert_eq!(after(&[&[(Input, 1), (Output, 9)], &[(Output, 0)]]).of(Output), 0);
    }

    #[test]
    fn zeros_of_an_empty_prompt_say_nothing() {
        let figures = after(&[
            &[(Input, 100), (CacheRead, 5), (Output, 9)],
            &[(Input, 0), (CacheRead, 0), (Output, 12)],
        ]);
        assert_eq!((figures.of(Input), figures.of(CacheRead), figures.of(Output)), (100, 5, 12));
        let figures = after(&[&[(Input, 100), (Output, 9)], &[(Input, 0), (Output, 0)]]);
        assert_eq!((figures.of(Input), figures.of(Output)), (100, 9));
        assert_eq!(after(&[&[(Input, 0), (Output, 0)]]).get(Input), Some(0));
    }

    #[test]
    fn a_smaller_sum_of_cache_writes_replaces_the_split() {
        let first: &[(Figure, u64)] =
            &[(Input, 1), (CacheWrite, 100), (CacheWrite5m, 60), (CacheWrite1h, 40)];
        let figures = after(&[first, &[(CacheWrite, 30)]]);
        assert_eq!((figures.of(CacheWrite5m), figures.of(CacheWrite1h)), (0, 30));
        let figures = after(&[first, &[(CacheWrite, 100)]]);
        assert_eq!((figures.of(CacheWrite5m), figures.of(CacheWrite1h)), (60, 40));
    }
}
