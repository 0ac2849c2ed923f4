//! The plain value of a bounded one.

/// A field's value as a record has it.
pub trait Plain {
    /// The type of the record's field.
    type Out;

    /// The value without its bounds.
    fn plain(self) -> Self::Out;
}

impl Plain for bool {
    type Out = Self;

    fn plain(self) -> Self {
        self
    }
}

impl<T: Plain> Plain for Option<T> {
    type Out = Option<T::Out>;

    fn plain(self) -> Self::Out {
        self.map(Plain::plain)
    }
}
