/** Uploads a price table, pasted or as a file. The pasted text stays until it is accepted. */
import { FileUp } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { ApiError } from "@/api/client";
import { Button } from "@/ui/button";
import { cx } from "@/ui/cx";
import { Dialog } from "@/ui/dialog";
import { useDiscard } from "@/ui/discard";
import { Failed } from "@/ui/empty";
import { Checkbox, Field, Textarea } from "@/ui/field";
import { useUpload } from "./api";
import { OutcomeView } from "./outcome";

const EXAMPLE = `{
  "my-model": {
    "mode": "chat",
    "input_cost_per_token": 0.000003,
    "output_cost_per_token": 0.000015
  }
}`;

export function UploadDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const upload = useUpload();
  const [text, setText] = useState("");
  const [file, setFile] = useState<string>();
  const [overwriteManual, setOverwriteManual] = useState(true);
  const [force, setForce] = useState(false);
  const [over, setOver] = useState(false);
  const [empty, setEmpty] = useState(false);
  const { close } = useDiscard(text.trim() !== "" && !upload.isSuccess, onClose);
  const fault =
    upload.error instanceof ApiError && upload.error.field === "jsonContent"
      ? upload.error
      : undefined;

  const read = async (chosen: File | undefined) => {
    if (!chosen) return;
    setText(await chosen.text());
    setFile(chosen.name);
    setEmpty(false);
  };
  const submit = () => {
    if (text.trim() === "") return setEmpty(true);
    upload.mutate({ jsonContent: text, overwriteManual, force });
  };

  if (upload.isSuccess) {
    return (
      <Dialog
        open
        onClose={onClose}
        title={t("prices.upload.title")}
        footer={
          <Button variant="primary" onClick={onClose}>
            {t("ui.close")}
          </Button>
        }
      >
        <OutcomeView outcome={upload.data} />
      </Dialog>
    );
  }
  return (
    <Dialog
      open
      onClose={close}
      title={t("prices.upload.title")}
      width="max-w-2xl"
      footer={
        <>
          <Button onClick={close}>{t("ui.cancel")}</Button>
          <Button variant="primary" busy={upload.isPending} onClick={submit}>
            {t("prices.upload.submit")}
          </Button>
        </>
      }
    >
      <div className="space-y-4">
        <label
          onDragOver={(event) => {
            event.preventDefault();
            setOver(true);
          }}
          onDragLeave={() => setOver(false)}
          onDrop={(event) => {
            event.preventDefault();
            setOver(false);
            void read(event.dataTransfer.files[0]);
          }}
          className={cx(
            "flex cursor-pointer items-center gap-3 rounded-lg",
            "border border-dashed px-4 py-3 text-sm",
            "focus-within:outline-2 focus-within:outline-offset-2",
            "focus-within:outline-accent hover:bg-hover",
            over ? "border-accent bg-accent-soft" : "border-strong-line",
          )}
        >
          <FileUp className="size-5 shrink-0 text-faint" aria-hidden />
          <span className="min-w-0">
            <span className="block truncate font-medium">{file ?? t("prices.upload.file")}</span>
            <span className="block text-xs text-faint">{t("prices.upload.fileHelp")}</span>
          </span>
          <input
            type="file"
            accept=".json,application/json"
            className="sr-only"
            onChange={(event) => {
              void read(event.target.files?.[0]);
              event.target.value = "";
            }}
          />
        </label>
        <Field
          label={t("prices.upload.text")}
          help={t("prices.upload.textHelp")}
          error={empty ? t("prices.upload.empty") : fault?.atField}
        >
          {(ids) => (
            <Textarea
              {...ids}
              rows={10}
              spellCheck={false}
              className="font-mono !text-xs"
              placeholder={EXAMPLE}
              value={text}
              onChange={(event) => {
                setText(event.target.value);
                setFile(undefined);
                setEmpty(false);
              }}
            />
          )}
        </Field>
        <Checkbox
          label={t("prices.upload.overwrite")}
          help={t("prices.upload.overwriteHelp")}
          checked={overwriteManual}
          onChange={(event) => setOverwriteManual(event.target.checked)}
        />
        <Checkbox
          label={t("prices.force")}
          help={t("prices.forceHelp")}
          checked={force}
          onChange={(event) => setForce(event.target.checked)}
        />
        {upload.error && !fault && <Failed error={upload.error} />}
      </div>
    </Dialog>
  );
}
