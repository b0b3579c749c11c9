;;; emacs -q --batch -l eglot.el -f ert-run-tests-batch-and-exit   -*- lexical-binding: t -*-
;; Eglot, without a line of ours in the editor, on a real agentd with the scripted model.
(require 'package)
(package-initialize)
(require 'eglot)
(require 'ert)
(require 'cl-lib)
(require 'json)

(defvar agentd-command (append (json-parse-string (getenv "AGENTD_TEST_COMMAND") :array-type 'list) nil))
(defvar agentd-messages nil "What `window/showMessage' said, the newest first.")
(defvar agentd-progress nil "The values of `$/progress', the newest first.")
(defvar agentd-choice nil "What is answered to a question: a function from its text and choices to one.")
(defvar agentd-questions nil)

(add-to-list 'eglot-server-programs (cons 'text-mode agentd-command))
(setq eglot-confirm-server-initiated-edits nil
      eglot-sync-connect 20
      eglot-autoshutdown nil
      eglot-autoreconnect nil
      vc-handled-backends nil
      eglot-stay-out-of '(flymake eldoc))

(cl-defmethod eglot-handle-notification :before (_s (_m (eql window/showMessage)) &key message &allow-other-keys)
  (push message agentd-messages))
(cl-defmethod eglot-handle-notification :before (_s (_m (eql $/progress)) &key value &allow-other-keys)
  (push value agentd-progress))
(advice-add 'completing-read :override
            (lambda (prompt choices &rest _)
              (push prompt agentd-questions)
              (let ((titles (all-completions "" choices)))
                (if agentd-choice (funcall agentd-choice prompt titles) (car titles)))))

(defun agentd-wait (what condition)
  (let ((end (+ (float-time) 20)))
    (while (and (not (funcall condition)) (< (float-time) end))
      (accept-process-output nil 0.1)
      ;; What came in one piece with an answer that was waited for, jsonrpc leaves until more comes.
      (when (eglot-current-server)
        (jsonrpc-async-request (eglot-current-server) :agentd/status nil :success-fn #'ignore :error-fn #'ignore)))
    (unless (funcall condition)
      (ert-fail (format "it did not happen: %s; %S %S" what agentd-messages (buffer-string))))))

(defun agentd-said (text)
  (agentd-wait text (lambda () (cl-some (lambda (said) (string-match-p (regexp-quote text) said)) agentd-messages))))

(defun agentd-execute (command &rest arguments)
  (jsonrpc-request (eglot-current-server) :workspace/executeCommand
                   (list :command command :arguments (vconcat arguments)) :timeout 20))

(defmacro with-agentd (content mode script &rest body)
  "Run BODY in a buffer with CONTENT, followed by agentd whose model plays SCRIPT."
  (declare (indent 3))
  `(let* ((dir (file-name-as-directory (make-temp-file (expand-file-name "w" (getenv "AGENTD_TEST_HOME")) t)))
          (file (expand-file-name "a.txt" dir))
          (script-file (concat (directory-file-name dir) ".json")))
     (write-region ,content nil file nil 'silent)
     (write-region (json-serialize ,script) nil script-file nil 'silent)
     (write-region (format "model = \"scripted/%s\"\nmode = \"%s\"\ntrusted = [\"%s\"]\n"
                           script-file ,mode (directory-file-name dir))
                   nil (getenv "AGENTD_CONFIG") nil 'silent)
     (setq agentd-messages nil agentd-progress nil agentd-choice nil agentd-questions nil)
     (with-current-buffer (find-file-noselect file)
       (buffer-enable-undo)
       (apply #'eglot (eglot--guess-contact))
       (unwind-protect (progn ,@body)
         (ignore-errors (eglot-shutdown (eglot-current-server)))
         (set-buffer-modified-p nil)
         (kill-buffer)))))

(defun says (text) `(:content [(:type "text" :text ,text)]))
(defun hangs (text) `(:content [(:type "text" :text ,text)] :hang t))
(defun calls (name &rest arguments) `(:content [(:type "tool_call" :name ,name :arguments ,arguments)]))

(defun says-and-calls (&rest responses)
  "One response that says what RESPONSES say."
  (list :content (apply #'vconcat (mapcar (lambda (each) (plist-get each :content)) responses))))
(defun agentd-transcript ()
  "What `agentd.showTranscript' writes for the user."
  (let ((uri (plist-get (agentd-execute "agentd.showTranscript") :uri)))
    (with-temp-buffer (insert-file-contents (eglot--uri-to-path uri)) (buffer-string))))

(ert-deftest a-prompt-is-answered-by-a-message ()
  (with-agentd "one\n" "ask" (vector (says "It is 42."))
    (let ((ids (agentd-execute "agentd.prompt" "what is it?")))
      (should (plist-get ids :promptId)))
    (agentd-said "It is 42.")))

(ert-deftest progress-is-told-and-a-cancel-ends-it ()
  (with-agentd "one\n" "ask" (vector (hangs "on and on"))
    (agentd-execute "agentd.prompt" "go")
    (when (plist-get (plist-get (eglot-client-capabilities (eglot-current-server)) :window) :workDoneProgress)
      (agentd-wait "progress begins" (lambda () (equal (plist-get (car agentd-progress) :kind) "begin"))))
    (should (= 1 (length (plist-get (agentd-execute "agentd.cancel") :sessionIds))))
    (should (= 0 (length (plist-get (agentd-execute "agentd.cancel") :sessionIds))))))

(ert-deftest a-question-is-asked-and-its-answer-obeyed ()
  (with-agentd "one\n" "ask" (vector (calls "bash" :command "touch made") (says "done"))
    (agentd-execute "agentd.prompt" "go")
    (agentd-said "done")
    (should (cl-some (lambda (prompt) (string-match-p "touch made" prompt)) agentd-questions))
    (should (file-exists-p (expand-file-name "made" (file-name-directory buffer-file-name))))))

(ert-deftest a-rejected-command-does-not-run ()
  (with-agentd "one\n" "ask" (vector (calls "bash" :command "touch made") (says "I see"))
    (setq agentd-choice (lambda (_ titles) (car (last titles))))
    (agentd-execute "agentd.prompt" "go")
    (agentd-said "I see")
    (should-not (file-exists-p (expand-file-name "made" (file-name-directory buffer-file-name))))))

(ert-deftest an-edit-lands-in-the-unsaved-buffer-and-is-undone-alone ()
  (with-agentd "one\ntwo\nthree\n" "edit"
      (vector (calls "read_file" :file_path "a.txt")
              (calls "edit_file" :file_path "a.txt" :old_string "three" :new_string "THREE") (says "done"))
    (goto-char (point-min))
    (insert "DIRTY ")
    (undo-boundary)
    (eglot--signal-textDocument/didChange)
    (agentd-execute "agentd.prompt" "go")
    (agentd-said "done")
    (should (equal (buffer-string) "DIRTY one\ntwo\nTHREE\n"))
    (should (buffer-modified-p))
    (should (equal (with-temp-buffer (insert-file-contents file) (buffer-string)) "one\ntwo\nthree\n"))
    (undo-boundary)
    (undo)
    (should (equal (buffer-string) "DIRTY one\ntwo\nthree\n"))))

(ert-deftest an-edit-for-an-older-text-is-refused ()
  (with-agentd "one\ntwo\n" "ask"
      (vector (calls "read_file" :file_path "a.txt")
              (calls "edit_file" :file_path "a.txt" :old_string "two" :new_string "TWO") (says "I read again"))
    (setq agentd-choice
          (let ((buffer (current-buffer)))
            (lambda (_ titles)
              (with-current-buffer buffer
                (goto-char (point-max))
                (insert "typed meanwhile\n")
                (eglot--signal-textDocument/didChange))
              (car titles))))
    (agentd-execute "agentd.prompt" "go")
    (agentd-said "I read again")
    (should (equal (buffer-string) "one\ntwo\ntyped meanwhile\n"))))

(ert-deftest a-code-action-does-what-a-comment-asks-for ()
  (with-agentd "one\n# agentd: explain this\n" "ask" (vector (says "It is a list."))
    (let* ((place '(:line 1 :character 0))
           (found (jsonrpc-request (eglot-current-server) :textDocument/codeAction
                                   (list :textDocument (eglot--TextDocumentIdentifier)
                                         :range (list :start place :end place) :context '(:diagnostics []))))
           (action (aref found 0))
           (command (plist-get action :command)))
      (should (equal (plist-get action :title) "agentd: explain this"))
      (apply #'agentd-execute (plist-get command :command) (append (plist-get command :arguments) nil))
      (agentd-said "It is a list."))))

(ert-deftest a-session-goes-on-after-the-daemon-was-killed ()
  (with-agentd "one\n" "ask" (vector (says "before") (says "after"))
    (let ((session (plist-get (agentd-execute "agentd.prompt" "go") :sessionId)))
      (agentd-said "before")
      (signal-process (jsonrpc--process (eglot-current-server)) 'SIGKILL)
      (agentd-wait "it has ended" (lambda () (not (eglot-current-server))))
      (apply #'eglot (eglot--guess-contact))
      (let ((transcript (jsonrpc-request (eglot-current-server) :agentd/session/export (list :sessionId session))))
        (should (string-match-p "before" (plist-get transcript :text))))
      (jsonrpc-request (eglot-current-server) :agentd/prompt (list :sessionId session :prompt "and on") :timeout 20))))
(ert-deftest the-session-goes-on-by-itself-after-a-kill-in-the-middle ()
  (with-agentd "one\n" "ask" (vector (hangs "half of it"))
    (let ((session (plist-get (agentd-execute "agentd.prompt" "the first words") :sessionId)))
      (signal-process (jsonrpc--process (eglot-current-server)) 'SIGKILL)
      (agentd-wait "it has ended" (lambda () (not (eglot-current-server))))
      (write-region (json-serialize (vector (says "now all of it"))) nil script-file nil 'silent)
      (apply #'eglot (eglot--guess-contact))
      (should (equal session (plist-get (agentd-execute "agentd.prompt" "and on") :sessionId)))
      (agentd-said "\"the first words\" goes on")
      (agentd-said "now all of it"))))

(ert-deftest what-it-does-can-be-read-while-it-does-it ()
  (with-agentd "one\n" "full"
      (vector (says-and-calls (says "I look first.") (calls "bash" :command "cat gate")) (says "It is open."))
    (let ((gate (expand-file-name "gate" (file-name-directory buffer-file-name))) shown)
      (call-process "mkfifo" nil nil nil gate)
      (agentd-execute "agentd.prompt" "go")
      (agentd-wait "half of it can be read"
                   (lambda ()
                     (setq shown (agentd-transcript))
                     (and (string-match-p "I look first" shown) (string-match-p "cat gate" shown))))
      (should-not (string-match-p "It is open" shown))
      (with-temp-buffer (write-region "open\n" nil gate 'append 'silent))
      (agentd-said "It is open.")
      (should (string-match-p "It is open" (agentd-transcript))))))
;;; eglot.el ends here
